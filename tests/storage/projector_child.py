"""A writer to be killed: applies the same endless log in small batches, saying how far it got."""

import sys

from storage.projector import Projector
from storage.table_place import TablePlace
from storage.tables import EdgeTable, NodeTable
from tests.storage.log_rows import DIMENSION, ListedLog, stored

if __name__ == "__main__":
    base, stores = TablePlace.of(sys.argv[1]), int(sys.argv[2])
    nodes = NodeTable.open(base.below("nodes"), dimension=DIMENSION)
    edges = EdgeTable.open(base.below("edges"))
    log = ListedLog(stored(stores))
    whole = log.rows
    projector = Projector(log, nodes, edges, epoch=0, generation=1, batch_rows=7, compact_after_fragments=3)
    for end in range(projector.position + 5, len(whole), 5):
        log.rows = whole[:end]
        projector.flush()
        print(projector.position, flush=True)
