package audit

import (
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// Codes of findings beside the events.FaultKind values.
const (
	// CodeClaimUnreserved: a key holds or held a claim that its own stream does not
	// know of, so that nobody can look the claim up by its key.
	CodeClaimUnreserved = "claim-unreserved"
	// CodeKeyBoundTwice: one key is live on two withdrawals.
	CodeKeyBoundTwice = "key-bound-twice"
	// CodeUnreachable: an event is in the log, and reading its stream does not find it, so
	// that commands take it for not there.
	CodeUnreachable = "unreachable"
	// CodeForeignStream: a stream that is none of ours.
	CodeForeignStream = "foreign-stream"
)

// Finding is one thing in the log that is not as it must be.
type Finding struct {
	// Code is one of the events.FaultKind values, or one of this package's.
	Code string `json:"code"`
	// Stream and Revision say where; Stream is empty for a finding about the log as a
	// whole, whose Reason then has the position.
	Stream   string `json:"stream,omitempty"`
	Revision uint64 `json:"revision"`
	// Reason is a full clause that says what was found.
	Reason string `json:"reason"`
}

// Report is what a verification found.
type Report struct {
	// Events and Streams count what was looked at.
	Events  uint64 `json:"events"`
	Streams uint64 `json:"streams"`
	// Findings is empty when the log is clean.
	Findings []Finding `json:"findings"`
}

// Clean reports whether nothing was found.
func (r Report) Clean() bool { return len(r.Findings) == 0 }

// Verify walks the whole log. Progress, where it is not nil, is told after every event
// how many were looked at. Its memory does not grow with the log. The error is not nil
// only when the log cannot be read; the report then has what was found before.
func Verify(ctx context.Context, log eventlog.Log, progress func(events uint64)) (Report, error) {
	return VerifySince(ctx, log, eventlog.Start, progress)
}

// VerifySince is Verify of the streams that have events after a position, each as a whole,
// for a log that was verified when it ended there. It counts the events after it, and the
// streams that began after it.
func VerifySince(ctx context.Context, log eventlog.Log, after eventlog.Position, progress func(events uint64)) (Report, error) {
	v, err := newVerifier(log)
	if err != nil {
		return Report{}, err
	}
	_, dense := log.(eventlog.Dense)
	last := after
	for recorded, err := range log.ReadAll(ctx, after) {
		if err != nil {
			return v.report, err
		}
		if at := recorded.Position; at <= last || dense && at != last+1 {
			v.find(string(events.FaultTruncated), "", 0, fmt.Sprintf("position %d follows position %d: events are missing from the log", at, last))
		}
		last = recorded.Position
		if err := v.visit(ctx, recorded); err != nil {
			return v.report, err
		}
		if progress != nil {
			progress(v.report.Events)
		}
	}
	return v.report, nil
}

// recent is how many streams are remembered as verified. Streams are short and their
// events lie close together, so that nearly every stream is verified once.
const recent = 1 << 16

type verifier struct {
	log   eventlog.Log
	codec *events.Codec
	// done has the id of the first event of each stream that was verified, as reading the
	// stream found it.
	done   *lru.Cache[string, [16]byte]
	found  map[Finding]bool
	report Report
}

func newVerifier(log eventlog.Log) (*verifier, error) {
	done, err := lru.New[string, [16]byte](recent)
	return &verifier{log: log, codec: events.NewCodec(), done: done, found: map[Finding]bool{}, report: Report{Findings: []Finding{}}}, err
}

func (v *verifier) find(code, stream string, revision uint64, reason string) {
	f := Finding{Code: code, Stream: stream, Revision: revision, Reason: reason}
	if !v.found[f] {
		v.found[f] = true
		v.report.Findings = append(v.report.Findings, f)
	}
}

// visit verifies the stream of an event of the log, unless that was just done.
func (v *verifier) visit(ctx context.Context, recorded eventlog.Recorded) error {
	v.report.Events++
	if recorded.Revision == 0 {
		v.report.Streams++
	}
	if first, ok := v.done.Get(recorded.Stream); ok {
		if recorded.Revision == 0 && recorded.ID != first {
			v.unreachable(recorded)
		}
		return nil
	}
	if _, ok := events.WithdrawalOfStream(recorded.Stream); ok {
		return v.withdrawal(ctx, recorded)
	}
	if events.IsRequestKeyStream(recorded.Stream) {
		return v.key(ctx, recorded)
	}
	if recorded.Stream == events.CustodyStream {
		reading := reading{met: recorded}
		_, sound, err := fold(ctx, v, recorded.Stream, aggregate.Custody{}, func(r events.Recorded) error {
			reading.meet(r)
			return nil
		})
		v.reached(reading, sound && err == nil)
		return err
	}
	v.done.Add(recorded.Stream, recorded.ID)
	v.find(CodeForeignStream, recorded.Stream, recorded.Revision, "the stream is neither a withdrawal's, nor a key's, nor the custody stream")
	return nil
}

// withdrawal verifies a withdrawal's stream, and that every claim in it is known to the
// key that took it.
func (v *verifier) withdrawal(ctx context.Context, met eventlog.Recorded) error {
	stream := met.Stream
	var tenant events.Tenant
	reading := reading{met: met}
	_, sound, err := fold(ctx, v, stream, aggregate.Withdrawal{}, func(r events.Recorded) error {
		reading.meet(r)
		switch e := r.Event.(type) {
		case events.WithdrawalRequested:
			tenant = e.Tenant
		case events.KeyClaimed:
			reserved, err := v.reserved(ctx, e.Key.Stream(tenant), stream, r.Revision)
			if err == nil && !reserved {
				v.find(CodeClaimUnreserved, stream, r.Revision, fmt.Sprintf("key %s took the claim without a reservation in its own stream", events.Quote(string(e.Key))))
			}
			return err
		}
		return nil
	})
	v.reached(reading, sound && err == nil)
	return err
}

// reading is a stream that is read because of an event that was met in the log.
type reading struct {
	met   eventlog.Recorded
	found bool     // the event, where it says that it is
	first [16]byte // the id of the stream's first event
}

func (r *reading) meet(e events.Recorded) {
	if e.Revision == 0 {
		r.first = e.ID
	}
	r.found = r.found || e.Revision == r.met.Revision && e.ID == r.met.ID
}

// reached finds an event that the log has and that is not among those of its stream.
// Another stream may have its name by now, because a command took it for not there.
func (v *verifier) reached(r reading, sound bool) {
	v.done.Add(r.met.Stream, r.first)
	if sound && !r.found {
		v.unreachable(r.met)
	}
}

func (v *verifier) unreachable(e eventlog.Recorded) {
	v.find(CodeUnreachable, e.Stream, e.Revision, fmt.Sprintf("the event at position %d is in the log, and reading its stream does not find it", e.Position))
}

// reserved reports whether a key's stream has a reservation for a revision of a
// withdrawal's stream.
func (v *verifier) reserved(ctx context.Context, keyStream, stream string, at uint64) (bool, error) {
	found := false
	_, _, err := fold(ctx, v, keyStream, aggregate.RequestKey{}, func(r events.Recorded) error {
		if e, ok := r.Event.(events.KeyReserved); ok && e.Withdrawal.Stream() == stream && e.At == at {
			found = true
		}
		return nil
	})
	return found, err
}

// key verifies a key's stream, that each reservation lies within its withdrawal's
// stream, and that at most one of them is live.
func (v *verifier) key(ctx context.Context, met eventlog.Recorded) error {
	stream := met.Stream
	bound := map[events.WithdrawalID]bool{}
	state := aggregate.RequestKey{}
	reading := reading{met: met}
	_, sound, err := fold(ctx, v, stream, state, func(r events.Recorded) error {
		reading.meet(r)
		var err error
		if state, err = state.Apply(r); err != nil {
			return nil // fold finds the same
		}
		reserved, _ := state.Reserved()
		w, sound, err := fold(ctx, v, reserved.Stream(), aggregate.Withdrawal{}, nil)
		if err != nil || !sound { // what is wrong with it is found by itself
			return err
		}
		standing, err := state.Standing(w)
		var damage *events.Damage
		if errors.As(err, &damage) {
			v.find(string(damage.Kind), damage.Stream, damage.Revision, damage.Reason)
		}
		if standing == aggregate.Bound {
			bound[reserved] = true
		}
		if len(bound) > 1 {
			v.find(CodeKeyBoundTwice, stream, r.Revision, fmt.Sprintf("the key is live on withdrawal %s and on another", reserved))
		}
		return nil
	})
	v.reached(reading, sound && err == nil)
	return err
}

// fold reads a stream to its end, or to the first thing that is wrong with it, which
// becomes a finding and makes it unsound. The error is not nil only when the stream
// cannot be read.
func fold[S interface {
	Apply(events.Recorded) (S, error)
}](ctx context.Context, v *verifier, stream string, state S, each func(events.Recorded) error) (end S, sound bool, err error) {
	chain := v.codec.Chain(stream)
	for stored, err := range v.log.ReadStream(ctx, stream, 0) {
		var damaged *eventlog.Damaged
		if errors.As(err, &damaged) {
			v.find(string(damaged.Kind), stream, chain.Next(), damaged.Reason)
			return state, false, nil
		}
		if err != nil {
			return state, false, err
		}
		recorded, err := chain.Read(events.Stored{
			Stream: stored.Stream, Revision: stored.Revision, ID: stored.ID, Type: stored.Type, Data: stored.Data, Metadata: stored.Metadata,
		})
		var damage *events.Damage
		if errors.As(err, &damage) {
			v.find(string(damage.Kind), stream, damage.Revision, damage.Reason)
			return state, false, nil
		}
		next, err := state.Apply(recorded)
		if err != nil {
			v.find(string(events.FaultOrder), stream, recorded.Revision, err.Error())
			return state, false, nil
		}
		state = next
		if each != nil {
			if err := each(recorded); err != nil {
				return state, true, err
			}
		}
	}
	return state, true, nil
}
