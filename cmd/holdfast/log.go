package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast/eventlog"
	"holdfast/eventlog/engines"
)

const sqliteScheme = "sqlite:"

// openLog opens the log that a URL names. Only a command that creates one makes a log
// that is not there. A log in memory would end with the command, and what it claimed with
// it, so the command line has none.
func openLog(ctx context.Context, url string, a access) (eventlog.Log, error) {
	if strings.HasPrefix(url, "memory:") {
		return nil, &eventlog.OpenError{Path: url, Reason: "a log in memory would be gone when the command ends", Try: writeURL}
	}
	log, err := engines.Open(ctx, url, &engines.Options{ReadOnly: a == reads, MustExist: a != creates})
	var open *eventlog.OpenError
	if !strings.HasPrefix(url, sqliteScheme) && !strings.HasPrefix(url, "esdb") && errors.As(err, &open) {
		return nil, &eventlog.OpenError{Path: open.Path, Reason: open.Reason, Try: writeURL, Err: open.Err}
	}
	return log, err
}

const writeURL = "write sqlite:FILE or esdb://HOST:PORT,..."

// place returns a log's URL as it can be shown: without a password, and with an absolute
// path, since a relative one is another log in another folder.
func place(url string) string {
	if file, ok := strings.CutPrefix(url, sqliteScheme); ok {
		if absolute, err := filepath.Abs(file); err == nil {
			return sqliteScheme + absolute
		}
	}
	return engines.Redacted(url)
}

// isNew reports whether there is no log yet where a URL names a file.
func isNew(url string) bool {
	file, ok := strings.CutPrefix(url, sqliteScheme)
	if !ok {
		return false
	}
	info, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// head returns how many events a log has, and false where its positions do not say. It
// looks for the last position by bisection, since a log is not asked for its length.
func head(ctx context.Context, log eventlog.Log) (uint64, bool, error) {
	if _, ok := log.(eventlog.Dense); !ok {
		return 0, false, nil
	}
	after := func(p uint64) (bool, error) {
		for _, err := range log.ReadAll(ctx, eventlog.Position(p)) {
			return err == nil, err
		}
		return false, nil
	}
	below, above := uint64(0), uint64(1) // there are at least below events, and fewer than above
	for {
		more, err := after(above - 1)
		if err != nil {
			return 0, false, fmt.Errorf("the log cannot be measured: %w", err)
		}
		if !more {
			break
		}
		below, above = above, 2*above
	}
	for below+1 < above {
		middle := below + (above-below)/2
		more, err := after(middle - 1)
		if err != nil {
			return 0, false, fmt.Errorf("the log cannot be measured: %w", err)
		}
		if more {
			below = middle
		} else {
			above = middle
		}
	}
	return below, true, nil
}
