"""What one request may bring, and how many are served at once."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Limits"]


class Limits(BaseModel):
    """Limits of one process of the service."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    body_bytes: int = Field(default=4 << 20, ge=1024, description="Largest body, in bytes.")
    content_characters: int = Field(default=200_000, ge=1, description="Longest text of a memory, in characters.")
    query_characters: int = Field(default=10_000, ge=1, description="Longest question, in characters.")
    items: int = Field(default=1000, ge=1, description="Most items of a batch.")
    in_progress: int = Field(default=8, ge=1, le=1024, description="Requests worked on at once, each in a thread.")
    waiting: int = Field(default=64, ge=0, description="Requests that wait; more are refused with 503 at once.")
    patience_s: float = Field(default=10.0, gt=0, description="Longest wait for a place, in seconds; then 503.")
