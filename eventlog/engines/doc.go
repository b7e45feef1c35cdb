// Package engines opens an event log by its URL. It is the only package that knows all
// engines, so the rest of the program depends on the port alone.
//
//	log, err := engines.Open(ctx, "sqlite:/var/lib/holdfast/log.db", nil)
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//
// These are the URLs:
//
//	sqlite:PATH           one SQLite file, absolute or relative to the working directory
//	esdb://HOSTS          a KurrentDB or EventStoreDB: see package kurrent for its options
//	esdb+discover://NAME  the same, found by a name that stands for all nodes
//	memory:               a log that is gone when it is closed, for trying things out
//
// Caveats. PATH is taken as it is written: "%" is an ordinary character, nothing is
// decoded. A "?" would begin options, of which a file has none, so it is an error; a file with
// one in its name cannot be opened by URL.
package engines
