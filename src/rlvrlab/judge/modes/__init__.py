"""One file per way of judging: calls, assert code, stdio, syntax, SQL, mathematics, expressions."""
