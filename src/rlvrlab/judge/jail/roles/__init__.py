"""One file per thing a jailed child can do; each has `run(job, report)`."""
