package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"holdfast/eventlog"
)

// Codes of findings about a bundle, beside those about the log in it.
const (
	// CodeBundleMalformed: a line is not what docs/AUDIT_FORMAT.md says.
	CodeBundleMalformed = "bundle-malformed"
	// CodeBundleTruncated: the last line is missing, or counts more than there is.
	CodeBundleTruncated = "bundle-truncated"
	// CodeBundleChanged: the bytes do not have the digest of the last line.
	CodeBundleChanged = "bundle-changed"
)

// maxLine is the longest line of a bundle: an event of the largest size, in base64.
const maxLine = 4 << 20

// VerifyBundle checks a bundle by itself, with no log and no trust in who wrote it: its
// form, its digest, and everything in it as [Verify] checks a log. Its memory grows by some
// 100 bytes for each event. Progress, where it is not nil, is told after every event how
// many were looked at. The error is not nil only when the bundle cannot be read.
//
// What no check of a bundle can see is what was never in it: compare the head and the
// digest with those of an export that is kept elsewhere.
func VerifyBundle(ctx context.Context, r io.ReadSeeker, progress func(events uint64)) (Report, Exported, error) {
	b, findings, x, err := open(r)
	if err != nil {
		return Report{}, x, err
	}
	var log eventlog.Log = b
	if b.manifest.Dense {
		log = dense{b}
	}
	report, err := Verify(ctx, log, progress)
	report.Findings = append(findings, report.Findings...)
	return report, x, err
}

// bundle is what is in a bundle, as a log for reading.
type bundle struct {
	r        io.ReadSeeker
	manifest manifest
	order    []int64            // where each event's line begins
	streams  map[string][]int64 // the same, by streams
}

// dense is a bundle whose positions leave none out.
type dense struct{ *bundle }

// DensePositions implements [eventlog.Dense].
func (dense) DensePositions() {}

// open goes through a bundle once, and finds what is wrong with its form.
func open(r io.ReadSeeker) (b *bundle, findings []Finding, x Exported, err error) {
	b = &bundle{r: r, streams: map[string][]int64{}}
	findings = []Finding{}
	find := func(code, format string, args ...any) {
		findings = append(findings, Finding{Code: code, Reason: fmt.Sprintf(format, args...)})
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, nil, x, err
	}
	lines := bufio.NewReaderSize(r, 1<<16)
	digest := sha256.New()
	var end *trailer
	for at, number := int64(0), 1; ; number++ {
		text, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, x, fmt.Errorf("line %d: %w", number, err)
		}
		if len(text) == 0 {
			break
		}
		switch {
		case end != nil:
			find(CodeBundleMalformed, "line %d comes after the last line", number)
		case number == 1:
			if err := strict(text, &b.manifest); err != nil || b.manifest.Format != Format {
				return nil, nil, x, fmt.Errorf("this is no bundle of the form %s: its first line does not say so (%v)", Format, err)
			}
		case bytes.HasPrefix(text, []byte(`{"events":`)):
			end = &trailer{}
			if err := strict(text, end); err != nil {
				find(CodeBundleMalformed, "line %d, the last one: %v", number, err)
			}
		default:
			e, err := parse(text)
			if err != nil {
				find(CodeBundleMalformed, "line %d: %v", number, err)
				break
			}
			b.order = append(b.order, at)
			b.streams[e.Stream] = append(b.streams[e.Stream], at)
			x.Events++
			if e.Revision == 0 {
				x.Streams++
			}
			x.Head = max(x.Head, e.Position)
		}
		if end == nil {
			digest.Write(text)
		}
		at += int64(len(text))
		if err != nil {
			break
		}
	}
	x.SHA256 = hex.EncodeToString(digest.Sum(nil))
	switch {
	case end == nil:
		find(CodeBundleTruncated, "the last line, which counts the events, is missing")
	case end.Events != x.Events || end.Streams != x.Streams:
		find(CodeBundleTruncated, "there are %d events in %d streams, and the last line counts %d in %d", x.Events, x.Streams, end.Events, end.Streams)
	}
	if end != nil && end.SHA256 != x.SHA256 {
		find(CodeBundleChanged, "the lines have the digest %s, and the last line says %q", x.SHA256, end.SHA256)
	}
	return b, findings, x, nil
}

// readLine reads a line with its end, of a bounded length.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > maxLine {
			return nil, fmt.Errorf("it is longer than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

// parse reads the line of an event.
func parse(text []byte) (e eventlog.Recorded, err error) {
	var l line
	if err := strict(text, &l); err != nil {
		return e, err
	}
	id, err := hex.DecodeString(l.ID)
	switch {
	case err != nil || len(id) != len(e.ID) || strings.ToLower(l.ID) != l.ID:
		return e, fmt.Errorf("the id %q is not 16 bytes in hexadecimal", l.ID)
	case l.Stream == "" || l.Type == "" || l.Position == 0:
		return e, errors.New("the stream, the type or the position is missing")
	}
	copy(e.ID[:], id)
	e.Type, e.Data, e.Metadata = l.Type, l.Data, l.Metadata
	e.Stream, e.Revision, e.Position = l.Stream, l.Revision, eventlog.Position(l.Position)
	return e, nil
}

// strict reads a JSON object that has nothing but the fields of into, once each and as
// Export writes them.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	var again bytes.Buffer
	encoder := json.NewEncoder(&again)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(into); err != nil {
		return err
	}
	if !bytes.Equal(again.Bytes(), text) {
		return errors.New("it is not written as a bundle writes it")
	}
	return nil
}

// at reads the event whose line begins at an offset.
func (b *bundle) at(offset int64) (eventlog.Recorded, error) {
	if _, err := b.r.Seek(offset, io.SeekStart); err != nil {
		return eventlog.Recorded{}, err
	}
	text, err := readLine(bufio.NewReaderSize(b.r, 4096))
	if err != nil && !errors.Is(err, io.EOF) {
		return eventlog.Recorded{}, err
	}
	return parse(text)
}

// Append implements [eventlog.Log]: nothing is ever written.
func (b *bundle) Append(context.Context, ...eventlog.StreamAppend) (eventlog.Position, error) {
	return 0, eventlog.ErrReadOnly
}

// ReadStream implements [eventlog.Log].
func (b *bundle) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		next := uint64(0)
		for _, offset := range b.streams[stream] {
			e, err := b.at(offset)
			switch {
			case err == nil && ctx.Err() != nil:
				err = context.Cause(ctx)
			case err == nil && e.Revision != next:
				err = eventlog.Missing(stream, next)
			}
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			if next++; e.Revision >= from && !yield(e, nil) {
				return
			}
		}
	}
}

// ReadAll implements [eventlog.Log].
func (b *bundle) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for _, offset := range b.order {
			e, err := b.at(offset)
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			if e.Position > after && !yield(e, nil) {
				return
			}
		}
	}
}

// Follow implements [eventlog.Log]: nothing ever comes.
func (b *bundle) Follow(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return b.ReadAll(ctx, after)
}

// Close implements [eventlog.Log].
func (b *bundle) Close() error { return nil }
