# make faults: hostile peers, input and files, thousands of connections, disks that fail or are full,
# and processes at their memory limit.
faults:
	@scripts/faults.sh

.PHONY: faults
