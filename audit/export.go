package audit

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"holdfast/eventlog"
	"holdfast/events"
)

// Format is the name and version of the form of a bundle: docs/AUDIT_FORMAT.md.
const Format = "holdfast-audit/1"

// manifest is the first line of a bundle.
type manifest struct {
	Format string `json:"format"`
	// Scope is "log", or the id of the withdrawal that the bundle is about.
	Scope string `json:"scope"`
	// Dense says that the log's positions leave none out, so that a missing one shows.
	// It is false for the bundle of one withdrawal.
	Dense bool `json:"dense"`
}

// line is one event of a bundle.
type line struct {
	Position uint64 `json:"position"`
	Stream   string `json:"stream"`
	Revision uint64 `json:"revision"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Data     []byte `json:"data"`
	Metadata []byte `json:"metadata"`
}

// trailer is the last line of a bundle.
type trailer struct {
	Events  uint64 `json:"events"`
	Streams uint64 `json:"streams"`
	// SHA256 is over every byte of the lines before this one.
	SHA256 string `json:"sha256"`
}

// scopeLog is the scope of a bundle with everything.
const scopeLog = "log"

// Exported is what went into a bundle.
type Exported struct {
	Events, Streams uint64
	// Head is the position of the last event in it.
	Head   eventlog.Position
	SHA256 string
}

// Export writes every event of a log as one bundle, in constant memory. The same log gives
// the same bytes. Progress, where it is not nil, is told how many events were written.
// Errors are those of the log and of the writer; what was written then is no bundle.
func Export(ctx context.Context, log eventlog.Log, w io.Writer, progress func(events uint64)) (Exported, error) {
	_, dense := log.(eventlog.Dense)
	return write(w, manifest{Format: Format, Scope: scopeLog, Dense: dense}, log.ReadAll(ctx, eventlog.Start), progress)
}

// ErrNoWithdrawal is the error of ExportWithdrawal where there is none of that id.
var ErrNoWithdrawal = errors.New("audit: there is no such withdrawal")

// ExportWithdrawal writes one withdrawal as a bundle: its stream, and those of the keys
// that claimed it. Errors as for Export, [ErrNoWithdrawal], and [*events.Damage]
// where the stream cannot be read to its end.
func ExportWithdrawal(ctx context.Context, log eventlog.Log, id events.WithdrawalID, w io.Writer) (Exported, error) {
	streams, err := about(ctx, log, id)
	if err != nil {
		return Exported{}, err
	}
	var all []eventlog.Recorded
	for _, stream := range streams {
		for e, err := range log.ReadStream(ctx, stream, 0) {
			if err != nil {
				return Exported{}, err
			}
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b eventlog.Recorded) int { return cmp.Compare(a.Position, b.Position) })
	return write(w, manifest{Format: Format, Scope: string(id)}, func(yield func(eventlog.Recorded, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}, nil)
}

// about returns the streams that tell of a withdrawal: its own, and its keys'.
func about(ctx context.Context, log eventlog.Log, id events.WithdrawalID) (streams []string, err error) {
	chain, tenant := events.NewCodec().Chain(id.Stream()), events.DefaultTenant
	for e, err := range log.ReadStream(ctx, id.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		recorded, err := chain.Read(stored(e))
		if err != nil {
			return nil, err
		}
		switch e := recorded.Event.(type) {
		case events.WithdrawalRequested:
			tenant = e.Tenant
		case events.KeyClaimed:
			if key := e.Key.Stream(tenant); !slices.Contains(streams, key) {
				streams = append(streams, key)
			}
		}
	}
	if chain.Next() == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoWithdrawal, id)
	}
	return append(streams, id.Stream()), nil
}

func stored(e eventlog.Recorded) events.Stored {
	return events.Stored{Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, Data: e.Data, Metadata: e.Metadata}
}

// write writes a bundle.
func write(w io.Writer, m manifest, all iter.Seq2[eventlog.Recorded, error], progress func(uint64)) (x Exported, err error) {
	digest := sha256.New()
	buffered := bufio.NewWriterSize(w, 1<<16)
	hashed := json.NewEncoder(io.MultiWriter(buffered, digest))
	hashed.SetEscapeHTML(false)
	if err := hashed.Encode(m); err != nil {
		return x, err
	}
	for e, err := range all {
		if err != nil {
			return x, err
		}
		if err := hashed.Encode(line{uint64(e.Position), e.Stream, e.Revision, hex.EncodeToString(e.ID[:]), e.Type, orEmpty(e.Data), orEmpty(e.Metadata)}); err != nil {
			return x, err
		}
		x.Events++
		if e.Revision == 0 {
			x.Streams++
		}
		x.Head = max(x.Head, e.Position)
		if progress != nil {
			progress(x.Events)
		}
	}
	x.SHA256 = hex.EncodeToString(digest.Sum(nil))
	err = json.NewEncoder(buffered).Encode(trailer{x.Events, x.Streams, x.SHA256})
	return x, errors.Join(err, buffered.Flush())
}

// orEmpty keeps JSON from writing null.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
