package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files that are missing")

// golden is one stored event, as a golden file holds it.
type golden struct {
	Stream   string `json:"stream"`
	Revision uint64 `json:"revision"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Data     string `json:"data"`
	Metadata string `json:"metadata"`
}

func (g golden) stored(t *testing.T) Stored {
	t.Helper()
	s := Stored{Stream: g.Stream, Revision: g.Revision, Type: g.Type, Data: []byte(g.Data), Metadata: []byte(g.Metadata)}
	if n, err := hex.Decode(s.ID[:], []byte(g.ID)); err != nil || n != len(s.ID) {
		t.Fatalf("id %q: %v", g.ID, err)
	}
	return s
}

// D3: what is written today is, byte for byte, what the golden files of today's versions
// hold. A change of an event's form without a new schema version fails here.
func TestGoldenWriting(t *testing.T) {
	codec := NewCodec()
	seen := map[string]bool{}
	for i, e := range sample() {
		seen[e.Type()] = true
		chain := codec.Chain("golden")
		s, _, err := chain.Append(sampleID(i), e, sampleMetadata())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "golden", fmt.Sprintf("v%d", codec.byType[e.Type()].version()), fmt.Sprintf("%02d-%s.json", i, e.Type()))
		got := encodeGolden(t, s)
		want, err := os.ReadFile(path)
		if os.IsNotExist(err) && *update {
			want = got
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			err = os.WriteFile(path, got, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is written in another form than %s holds.\nEvents that were written once must be read for ever: make a new schema version with an upcast.\ngot:\n%s\nwant:\n%s", e.Type(), path, got, want)
		}
	}
	for name, d := range codec.byType {
		if !seen[name] {
			t.Errorf("%s has no golden file", name)
		}
		for v := 1; v <= d.version(); v++ {
			pattern := filepath.Join("testdata", "golden", fmt.Sprintf("v%d", v), "*-"+name+".json")
			if files, err := filepath.Glob(pattern); err != nil || len(files) == 0 {
				t.Errorf("%s: no golden file of version %d: %v", name, v, err)
			}
		}
	}
}

// D3: every event of every version that was ever written decodes, to today's event.
func TestGoldenReading(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "golden", "v*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	kept := keptDigests(t, paths)
	for path := range kept {
		if !slices.Contains(paths, path) {
			t.Errorf("%s is gone: what was written once is read for ever", path)
		}
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if kept[path] != digestOf(data) {
			t.Errorf("%s has changed, or is not in %s: what was written once is read for ever", path, digestsFile)
		}
		var g golden
		if err := json.Unmarshal(data, &g); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		chain := NewCodec().Chain(g.Stream)
		got, err := chain.Read(g.stored(t))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var n int
		if _, err := fmt.Sscanf(filepath.Base(path), "%d-", &n); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if want := sample()[n]; !reflect.DeepEqual(want, got.Event) {
			t.Errorf("%s: got %#v, want %#v", path, got.Event, want)
		}
	}
}

// digestsFile has the digest of every golden file, so that none goes, or changes, unseen.
var digestsFile = filepath.Join("testdata", "golden", "SHA256SUMS")

// keptDigests returns the digests by path. With -update, files that have none yet get one.
func keptDigests(t *testing.T, paths []string) map[string]string {
	t.Helper()
	listed, err := os.ReadFile(digestsFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		digest, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("%s: no digest and name: %q", digestsFile, line)
		}
		kept[filepath.Join(filepath.Dir(digestsFile), filepath.FromSlash(name))] = digest
	}
	if !*update {
		return kept
	}
	for _, path := range paths {
		if kept[path] != "" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kept[path] = digestOf(data)
		name, err := filepath.Rel(filepath.Dir(digestsFile), path)
		if err != nil {
			t.Fatal(err)
		}
		listed = fmt.Appendf(listed, "%s  %s\n", kept[path], filepath.ToSlash(name))
	}
	if err := os.WriteFile(digestsFile, listed, 0o644); err != nil {
		t.Fatal(err)
	}
	return kept
}

func digestOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func encodeGolden(t *testing.T, s Stored) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(golden{s.Stream, s.Revision, hex.EncodeToString(s.ID[:]), s.Type, string(s.Data), string(s.Metadata)}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A build that knows version 1 alone stops at an outcome of version 2, and does not take it
// for something else (D3).
func TestNewerVersionStops(t *testing.T) {
	chain := NewCodec().Chain("s")
	s, _, err := chain.Append(sampleID(0), sample()[6], sampleMetadata())
	if err != nil {
		t.Fatal(err)
	}
	older := newCodec(define[OutcomeResolved]()).Chain("s")
	var damage *Damage
	if _, err := older.Read(s); !errors.As(err, &damage) || damage.Kind != FaultUnknownVersion {
		t.Errorf("got %v, want an unknown version", err)
	}
}
