package audit_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/internal/workload"
)

// outsider is the verifier of somebody who has docs/AUDIT_FORMAT.md and nothing of ours. It
// returns the first thing that is wrong.
func outsider(r io.Reader) error {
	digest, heads := sha256.New(), map[string]string{}
	next, last, count := map[string]uint64{}, uint64(0), uint64(0)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	var dense bool
	for n := 0; lines.Scan(); n++ {
		var l struct {
			Format                   string
			Dense                    bool
			Events, Streams          uint64
			Position, Revision       uint64
			Stream, ID, Type, SHA256 string
			Data, Metadata           *string
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return err
		}
		if l.SHA256 != "" {
			if l.SHA256 != hex.EncodeToString(digest.Sum(nil)) || l.Events != count || l.Streams != uint64(len(heads)) {
				return fmt.Errorf("the last line is about other lines")
			}
			if lines.Scan() {
				return fmt.Errorf("there is more after the last line")
			}
			return nil
		}
		digest.Write(append(lines.Bytes(), '\n'))
		if n == 0 {
			if dense = l.Dense; l.Format != "holdfast-audit/1" {
				return fmt.Errorf("format %q", l.Format)
			}
			continue
		}
		if l.Data == nil || l.Metadata == nil {
			return fmt.Errorf("line %d: no data", n+1)
		}
		data, err := base64.StdEncoding.DecodeString(*l.Data)
		metadata, err2 := base64.StdEncoding.DecodeString(*l.Metadata)
		if err != nil || err2 != nil || l.Position <= last || dense && l.Position != last+1 || l.Revision != next[l.Stream] {
			return fmt.Errorf("line %d: a gap, or no base64", n+1)
		}
		count, last, next[l.Stream] = count+1, l.Position, l.Revision+1
		open, claimed, found := strings.Cut(string(metadata), `,"digest":"`)
		var input []byte
		for _, field := range []string{"holdfast/event/v1", l.Stream, strconv.FormatUint(l.Revision, 10), l.ID, l.Type, string(data), open} {
			input = append(binary.BigEndian.AppendUint64(input, uint64(len(field))), field...)
		}
		sum := sha256.Sum256(input)
		var meta struct{ Prev string }
		if err := json.Unmarshal(metadata, &meta); err != nil || !found || claimed != hex.EncodeToString(sum[:])+`"}` || meta.Prev != heads[l.Stream] {
			return fmt.Errorf("line %d: the chain of %s is broken", n+1, l.Stream)
		}
		heads[l.Stream] = hex.EncodeToString(sum[:])
	}
	return fmt.Errorf("the last line is missing")
}

func exported(t *testing.T, log eventlog.Log) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := audit.Export(t.Context(), log, &b, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func lived(t *testing.T, n int) eventlog.Log {
	t.Helper()
	log := memory.New()
	if err := workload.New(5).Fill(t.Context(), log, n); err != nil {
		t.Fatal(err)
	}
	return log
}

func verifyBundle(t *testing.T, b []byte) audit.Report {
	t.Helper()
	report, _, err := audit.VerifyBundle(t.Context(), bytes.NewReader(b), nil)
	if err != nil {
		report.Findings = append(report.Findings, audit.Finding{Code: audit.CodeBundleMalformed, Reason: err.Error()})
	}
	return report
}

// A bundle is clean by our verifier and by an outsider's, and is the same each time.
func TestBundle(t *testing.T) {
	t.Parallel()
	log := lived(t, 3000)
	b := exported(t, log)
	if report := verifyBundle(t, b); !report.Clean() || report.Events < 3000 {
		t.Errorf("%+v", report)
	}
	if err := outsider(bytes.NewReader(b)); err != nil {
		t.Errorf("the outsider says: %v", err)
	}
	if !bytes.Equal(b, exported(t, log)) {
		t.Error("exported again it is another bundle")
	}
	// Each withdrawal by itself.
	n := 0
	for e, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		id, ours := events.WithdrawalOfStream(e.Stream)
		if !ours || e.Revision != 0 || n == 60 {
			continue
		}
		n++
		var one bytes.Buffer
		if _, err := audit.ExportWithdrawal(t.Context(), log, id, &one); err != nil {
			t.Fatal(err)
		}
		if report := verifyBundle(t, one.Bytes()); !report.Clean() {
			t.Errorf("%s: %+v", id, report)
		}
		if err := outsider(&one); err != nil {
			t.Errorf("%s: the outsider says: %v", id, err)
		}
	}
}

// Every byte of a bundle counts: none can be changed, and no line left out, doubled or
// moved, without both verifiers finding it. So it is where somebody has made the last line
// anew, for all that the chains and the positions cover.
func TestEveryByteOfABundleCounts(t *testing.T) {
	t.Parallel()
	good := exported(t, lived(t, 4))
	damaged := func(what string, b []byte, codes ...string) {
		t.Helper()
		report := verifyBundle(t, b)
		if report.Clean() {
			t.Fatalf("%s: our verifier finds nothing", what)
		}
		for _, code := range codes {
			if !slices.ContainsFunc(report.Findings, func(f audit.Finding) bool { return f.Code == code }) {
				t.Errorf("%s: no finding %s in %+v", what, code, report.Findings)
			}
		}
		if err := outsider(bytes.NewReader(b)); err == nil {
			t.Fatalf("%s: the outsider finds nothing", what)
		}
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1
		damaged(fmt.Sprintf("byte %d", i), b)
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	lines = lines[:len(lines)-1] // behind the last end of a line
	for i := 1; i < len(lines)-1; i++ {
		without := slices.Concat(lines[:i], lines[i+1:])
		damaged(fmt.Sprintf("without line %d", i+1), bytes.Join(without, nil), audit.CodeBundleTruncated, audit.CodeBundleChanged)
		if i < len(lines)-2 { // without its last event it is a bundle of the log before that
			damaged(fmt.Sprintf("without line %d, sealed anew", i+1), sealed(without), string(events.FaultTruncated))
		}
		if i > 1 {
			moved := slices.Clone(lines)
			moved[i], moved[i-1] = moved[i-1], moved[i]
			damaged(fmt.Sprintf("line %d before the one above", i+1), bytes.Join(moved, nil), audit.CodeBundleChanged)
		}
	}
	damaged("without its end", bytes.Join(lines[:len(lines)-1], nil), audit.CodeBundleTruncated)
	damaged("with more behind", append(bytes.Clone(good), lines[1]...), audit.CodeBundleMalformed)
}

// sealed gives lines a last line of their own.
func sealed(lines [][]byte) []byte {
	body := bytes.Join(lines[:len(lines)-1], nil)
	sum := sha256.Sum256(body)
	streams := bytes.Count(body, []byte(`"revision":0,`))
	return fmt.Appendf(body, `{"events":%d,"streams":%d,"sha256":"%x"}`+"\n", len(lines)-2, streams, sum)
}

// Each byte of each stored event counts in the log itself, in whatever field it is.
func TestEveryByteOfALogCounts(t *testing.T) {
	t.Parallel()
	var all []eventlog.Recorded
	for e, err := range lived(t, 4).ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for i, e := range all {
		flips := map[string]func(e *eventlog.Recorded, at int){
			"data":     func(e *eventlog.Recorded, at int) { e.Data[at] ^= 1 },
			"metadata": func(e *eventlog.Recorded, at int) { e.Metadata[at] ^= 1 },
			"id":       func(e *eventlog.Recorded, at int) { e.ID[at] ^= 1 },
			"type":     func(e *eventlog.Recorded, at int) { e.Type = flipped(e.Type, at) },
			"stream":   func(e *eventlog.Recorded, at int) { e.Stream = flipped(e.Stream, at) },
			"revision": func(e *eventlog.Recorded, at int) { e.Revision ^= 1 << at },
		}
		for field, n := range map[string]int{"data": len(e.Data), "metadata": len(e.Metadata), "id": 16, "type": len(e.Type), "stream": len(e.Stream), "revision": 6} {
			for at := range n {
				changed := slices.Clone(all)
				changed[i].Data, changed[i].Metadata = bytes.Clone(e.Data), bytes.Clone(e.Metadata)
				flips[field](&changed[i], at)
				var b bytes.Buffer
				if _, err := audit.Export(t.Context(), &listed{changed}, &b, nil); err != nil {
					t.Fatal(err)
				}
				// What it was made of is wrong, not the bundle.
				report := verifyBundle(t, b.Bytes())
				if report.Clean() || slices.ContainsFunc(report.Findings, func(f audit.Finding) bool { return strings.HasPrefix(f.Code, "bundle") }) {
					t.Fatalf("event %d, byte %d of its %s: %+v", i, at, field, report.Findings)
				}
			}
		}
	}
}

func flipped(s string, at int) string {
	b := []byte(s)
	b[at] ^= 1
	return string(b)
}

// A thousand events within one tick of the clock are a sound log, and times keep their
// microseconds.
func TestOneTick(t *testing.T) {
	t.Parallel()
	log, codec := memory.New(), events.NewCodec()
	tick := time.Date(2026, 12, 1, 9, 36, 46, 123456789, time.UTC)
	amount, err := events.ParseAmount("1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		id := events.MintWithdrawalID(events.DefaultTenant, "a", fmt.Sprint("r-", i))
		chain := codec.Chain(id.Stream())
		s, _, err := chain.Append([16]byte{0: byte(i >> 8), 1: byte(i), 15: 1}, events.WithdrawalRequested{
			Tenant: events.DefaultTenant, Withdrawal: id, Account: "a", Reference: fmt.Sprint("r-", i), Amount: amount, Currency: "EUR", Destination: "d",
		}, events.Metadata{RecordedAt: events.At(tick), Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: id.Stream(), Events: []eventlog.Event{{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata}}}); err != nil {
			t.Fatal(err)
		}
		fresh := codec.Chain(id.Stream())
		if r, err := fresh.Read(s); err != nil || !r.Metadata.RecordedAt.Time().Equal(tick.Truncate(time.Microsecond)) {
			t.Fatalf("%s became %s (%v)", tick, r.Metadata.RecordedAt, err)
		}
	}
	if report := verifyBundle(t, exported(t, log)); !report.Clean() || report.Events != 1000 {
		t.Errorf("%+v", report)
	}
}
