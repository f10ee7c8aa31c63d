"""Ray actors (issue "The flow on Ray"); nothing of the embedded product lives here."""
