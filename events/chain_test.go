package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// writeStream stores the sample as one stream.
func writeStream(t testing.TB, codec *Codec) []Stored {
	t.Helper()
	chain := codec.Chain("stream")
	var all []Stored
	for i, e := range sample() {
		s, _, err := chain.Append(sampleID(i), e, sampleMetadata())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func readStream(codec *Codec, all []Stored) ([]Recorded, error) {
	chain := codec.Chain("stream")
	var read []Recorded
	for _, s := range all {
		r, err := chain.Read(s)
		if err != nil {
			return read, err
		}
		read = append(read, r)
	}
	return read, nil
}

// What Append says will be read is what is read: a first answer and its replay are made
// of the same values.
func TestChainRoundTrip(t *testing.T) {
	codec := NewCodec()
	chain := codec.Chain("stream")
	var want []Recorded
	for i, e := range sample() {
		_, r, err := chain.Append(sampleID(i), e, sampleMetadata())
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, r)
	}
	got, err := readStream(codec, writeStream(t, codec))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// D4: each kind of tampering is a finding of its own.
func TestDamageKinds(t *testing.T) {
	codec := NewCodec()
	reseal := func(s *Stored, change func(*Metadata)) {
		var m Metadata
		if err := json.Unmarshal(s.Metadata, &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		var err error
		if s.Metadata, err = m.seal(&object{written: appendField(s.appendPlace(nil), s.Data)}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		tamper func([]Stored) []Stored
		want   FaultKind
	}{
		"a changed value": {func(all []Stored) []Stored {
			all[3].Data = bytes.Replace(all[3].Data, []byte("bank"), []byte("tank"), 1)
			return all
		}, FaultContent},
		"another type":         {func(all []Stored) []Stored { all[4].Type = "SendUnconfirmed"; return all }, FaultContent},
		"another id":           {func(all []Stored) []Stored { all[4].ID[0]++; return all }, FaultContent},
		"metadata cut off":     {func(all []Stored) []Stored { all[4].Metadata = all[4].Metadata[:20]; return all }, FaultContent},
		"no metadata":          {func(all []Stored) []Stored { all[4].Metadata = nil; return all }, FaultContent},
		"D5 the start is gone": {func(all []Stored) []Stored { return all[1:] }, FaultTruncated},
		"D5 one is missing":    {func(all []Stored) []Stored { return append(all[:4:4], all[5:]...) }, FaultGap},
		"one comes twice":      {func(all []Stored) []Stored { return append(all[:4:4], all[3:]...) }, FaultGap},
		"two changed places":   {func(all []Stored) []Stored { all[3], all[4] = all[4], all[3]; return all }, FaultGap},
		"another predecessor": {func(all []Stored) []Stored {
			reseal(&all[4], func(m *Metadata) { m.Prev = strings.Repeat("0", 64) })
			return all
		}, FaultFork},
		"one was rewritten":      {func(all []Stored) []Stored { reseal(&all[4], func(m *Metadata) { m.Actor = "eve" }); return all }, FaultFork},
		"another stream's event": {func(all []Stored) []Stored { all[4].Stream = "other"; return all }, FaultGap},
		"D3 an unknown type": {func(all []Stored) []Stored {
			all[4].Type = "SendPostponed"
			reseal(&all[4], func(*Metadata) {})
			return all
		}, FaultUnknownVersion},
		"D3 a newer schema": {func(all []Stored) []Stored { reseal(&all[4], func(m *Metadata) { m.Schema = 2 }); return all }, FaultUnknownVersion},
		"D3 schema zero":    {func(all []Stored) []Stored { reseal(&all[4], func(m *Metadata) { m.Schema = 0 }); return all }, FaultUnknownVersion},
		"D3 an unknown field": {func(all []Stored) []Stored {
			all[4].Data = append([]byte(`{"fee":"1",`), all[4].Data[1:]...)
			reseal(&all[4], func(*Metadata) {})
			return all
		}, FaultContent},
		"a value no event may have": {func(all []Stored) []Stored {
			all[0].Data = bytes.Replace(all[0].Data, []byte(`"10.25"`), []byte(`"10.250"`), 1)
			reseal(&all[0], func(*Metadata) {})
			return all
		}, FaultContent},
		"text after the data": {func(all []Stored) []Stored {
			all[4].Data = append(all[4].Data, " {}"...)
			reseal(&all[4], func(*Metadata) {})
			return all
		}, FaultContent},
		"no actor": {func(all []Stored) []Stored { reseal(&all[4], func(m *Metadata) { m.Actor = "" }); return all }, FaultContent},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := readStream(codec, c.tamper(writeStream(t, codec)))
			var damage *Damage
			if !errors.As(err, &damage) {
				t.Fatalf("read %d events: %v", len(read), err)
			}
			// An event that was rewritten with a new digest shows in the one after it.
			if damage.Kind != c.want {
				t.Errorf("got %v, want kind %s", err, c.want)
			}
		})
	}
}

// D4: no byte of a stored event can be flipped without its being found.
func TestEveryByteCounts(t *testing.T) {
	codec := NewCodec()
	all := writeStream(t, codec)
	flips := 0
	for i := range all {
		for _, part := range [][]byte{all[i].Data, all[i].Metadata, all[i].ID[:]} {
			for j := range part {
				part[j] ^= 0x20
				if _, err := readStream(codec, all); err == nil {
					t.Errorf("event %d: byte %d of %q was flipped and nobody noticed", i, j, part)
				}
				part[j] ^= 0x20
				flips++
			}
		}
	}
	if flips < 1000 {
		t.Errorf("only %d flips were tried", flips)
	}
}

// The mechanism of schema versions, with an event type that has had two: its first
// version had one name for the rail and the account.
func TestUpcast(t *testing.T) {
	old := newCodec(define[SendUnconfirmed]())
	lift := func(data json.RawMessage) (json.RawMessage, error) {
		var v1 SendUnconfirmed
		if err := unmarshalStrict(data, &v1); err != nil {
			return nil, err
		}
		return json.Marshal(unconfirmedV2{v1, "lifted"})
	}
	now := newCodec(define[unconfirmedV2](lift))

	chain := old.Chain("stream")
	first, _, err := chain.Append(sampleID(0), SendUnconfirmed{1, "timeout"}, sampleMetadata())
	if err != nil {
		t.Fatal(err)
	}
	// Today's code reads the old event, and goes on in the same stream.
	chain = now.Chain("stream")
	got, err := chain.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	if want := (unconfirmedV2{SendUnconfirmed{1, "timeout"}, "lifted"}); got.Event != want {
		t.Errorf("got %+v, want %+v", got.Event, want)
	}
	second, _, err := chain.Append(sampleID(1), unconfirmedV2{SendUnconfirmed{2, "reset"}, "new"}, sampleMetadata())
	if err != nil {
		t.Fatal(err)
	}
	// Yesterday's code stops at the new event, and does not skip it.
	chain = old.Chain("stream")
	if _, err := chain.Read(first); err != nil {
		t.Fatal(err)
	}
	var damage *Damage
	if _, err := chain.Read(second); !errors.As(err, &damage) || damage.Kind != FaultUnknownVersion {
		t.Errorf("got %v, want %s", err, FaultUnknownVersion)
	}
	// An upcast that fails is an error, not a default.
	broken := newCodec(define[unconfirmedV2](func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no") }))
	chain = broken.Chain("stream")
	if _, err := chain.Read(first); !errors.As(err, &damage) || damage.Kind != FaultContent {
		t.Errorf("got %v, want %s", err, FaultContent)
	}
}

type unconfirmedV2 struct {
	SendUnconfirmed
	Origin string `json:"origin"`
}

func (e *unconfirmedV2) fields(o *object) {
	e.SendUnconfirmed.fields(o)
	text(o, "origin", &e.Origin)
}

func TestAppendRefusesWhatMayNotBeWritten(t *testing.T) {
	codec := NewCodec()
	someFee, err := ParseAmount("0.35")
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]Event{
		"an empty event":           WithdrawalRequested{},
		"sent without a reference": OutcomeResolved{Key: "k", Result: ResultSent, Source: SourceRail, Attempt: 1, Response: Response{MediaType: "text/plain"}},
		"an outcome of unknown":    OutcomeResolved{Key: "k", Result: ResultUnknown, Source: SourceRail, Attempt: 1, Response: Response{MediaType: "text/plain"}},
		"nobody's outcome":         OutcomeResolved{Key: "k", Result: ResultFailed, Response: Response{MediaType: "text/plain"}},
		"a fee of what failed":     OutcomeResolved{Key: "k", Result: ResultFailed, Source: SourceRail, Attempt: 1, Response: Response{MediaType: "text/plain"}, Fee: someFee},
		"a time of what failed":    OutcomeResolved{Key: "k", Result: ResultFailed, Source: SourceRail, Attempt: 1, Response: Response{MediaType: "text/plain"}, RailTime: sampleMetadata().RecordedAt},
		"a late fee of a refusal":  LateOutcomeReported{Key: "k", Attempt: 1, Result: ResultRefused, Fee: someFee},
		"a late time of silence":   LateOutcomeReported{Key: "k", Attempt: 1, Result: ResultUnknown, RailTime: sampleMetadata().RecordedAt},
		"B6 no evidence":           Released{Key: "k", Reason: "looked"},
		"an invalid reference":     OutcomeResolved{Key: "k", Result: ResultSent, Reference: "\xff", Source: SourceRail, Attempt: 1, Response: Response{MediaType: "text/plain"}},
		"a type that is not known": unconfirmedV3{},
	} {
		chain := codec.Chain("stream")
		if _, _, err := chain.Append(sampleID(0), e, sampleMetadata()); err == nil {
			t.Errorf("%s was written", name)
		}
		if chain.Next() != 0 {
			t.Errorf("%s moved the chain on", name)
		}
	}
	chain := codec.Chain("stream")
	if _, _, err := chain.Append(sampleID(0), sample()[0], Metadata{Actor: "ann"}); err == nil {
		t.Error("an event without a time was written")
	}
}

type unconfirmedV3 struct{ SendUnconfirmed }

func (unconfirmedV3) Type() string { return "SendPostponed" }

// Decoding never panics, whatever the bytes.
func FuzzChainRead(f *testing.F) {
	for _, s := range writeStream(f, NewCodec()) {
		f.Add(s.Type, s.Data, s.Metadata)
	}
	f.Fuzz(func(t *testing.T, eventType string, data, metadata []byte) {
		codec := NewCodec()
		s := Stored{Stream: "stream", Type: eventType, Data: data, Metadata: metadata}
		chain := codec.Chain("stream")
		if _, err := chain.Read(s); err != nil {
			var damage *Damage
			if !errors.As(err, &damage) {
				t.Fatalf("not damage: %v", err)
			}
		}
		// Past the digest, which a fuzzer cannot guess: the decoder itself.
		e, _, err := codec.decode(eventType, 1, data)
		if err != nil {
			return
		}
		var again object
		if _, err := codec.encode(&again, e); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		e2, _, err := codec.decode(eventType, 1, again.written)
		if err != nil || !reflect.DeepEqual(e, e2) {
			t.Fatalf("%+v was written and read as %+v: %v", e, e2, err)
		}
	})
}

// The metadata is written by hand, and exactly as the library would.
func FuzzMetadata(f *testing.F) {
	f.Add("ann", "c", "", "t", "abc", 1)
	f.Add("Zo\u00eb <\"&\\>", "\u2028", "\x7f", "", "", 0)
	f.Fuzz(func(t *testing.T, actor, correlation, causation, traceparent, prev string, schema int) {
		m := sampleMetadata()
		m.Actor, m.CorrelationID, m.CausationID, m.Traceparent, m.Prev, m.Schema = actor, correlation, causation, traceparent, prev, schema
		want, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := writeForm(&m)
		if err != nil || string(got) != string(want) {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	})
}
