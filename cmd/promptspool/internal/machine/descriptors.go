package machine

import "log/slog"

// Files and connections take a descriptor each, and a process may have only so many. If
// connections took them all, the database could not open its next file.

// opsPart divides the free descriptors: the operations listener gets one part.
const opsPart = 16

// filesMax is how many descriptors are kept for files at most: a database of a terabyte needs them.
const filesMax = 4096

// connectionsMin is what each listener gets, however few descriptors there are.
const connectionsMin = 4

// ConnectionBounds returns how many connections the API and the operations listener may have.
//
// That is most and opsMost, or fewer if the limit of open files is low. Call it when the
// database is open: half of the descriptors that are left, or filesMax, stay for files and
// for calls to others.
func ConnectionBounds(most, opsMost int, logger *slog.Logger) (api, ops int) {
	limit, open, ok := descriptors()
	if !ok {
		return most, opsMost
	}
	left := limit - open

	// For a moment there are a quarter more than may be: those that are being cut.
	api = min(most, max(connectionsMin, (left-min(left/2, filesMax))*4/5))
	ops = min(opsMost, max(connectionsMin, left/opsPart))
	if api < most {
		logger.Info("the limit of open files (ulimit -n) bounds the connections",
			"open_files_max", limit, "connections_max", api)
	}

	return api, ops
}
