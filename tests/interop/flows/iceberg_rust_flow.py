"""iceberg-rust as the package pyiceberg-core brings it: a reader for DataFusion."""

ALWAYS = ()


def step_read(c):
    c.reads_base(False)


def step_lineage(c):
    c.reads_base(True)
