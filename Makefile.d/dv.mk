# The vector and Puffin tool of tests/it, so that foreign readers can be held against the codecs.
all: $(B)/it/dvtool
