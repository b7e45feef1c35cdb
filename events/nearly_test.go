package events

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// snippets are what JSON is made of, and what it is nearly made of: edits with them make
// texts that differ little from what is written.
func snippets() []string {
	return []string{
		`"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, ` `, "\n", "\t", "\x00", "\x7f", "\xff", "\xc3\x28", "\xed\xa0\x80", "\ufeff", "\u2028", "\u00e9",
		`\u0061`, `\u2028`, `\ud800`, `\ud83d\ude00`, `\u00`, `\n`, `\/`, `\"`, `\\`, `\x`, `<`, `\u003c`, `&`, `/`,
		`0`, `-0`, `-1`, `1`, `01`, `1.0`, `1e2`, `1E-2`, `.5`, `9`, `999999999999999999`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`,
		`18446744073709551615`, `18446744073709551616`, `1e400`, `null`, `true`, `""`, `{}`, `[]`, `"x"`,
		`"key":"k",`, `,"key":"k"`, `"Key":"k",`, `"attempt":1,`, `,"attempt":0`, `"response":null,`, `,"response":{"media_type":"","text":""}`,
		`"text":"t",`, `,"text":"t"`, `,"text":null`, `,"base64":"AA=="`, `,"base64":""`, `,"base64":null`, `"media_type":"m",`, `,"reference":""`, `"reference":null,`,
		`,"evidence":"e"`, `,"more":1`, `"tenant":"t",`, `"2026-05-03T12:00:00,000000Z"`, `"2026-05-03T12:00:00.000000Z"`, `"10"`, `"10.0"`, `"1e1"`,
	}
}

// Texts that are nearly what is written are read, or refused, exactly as the library does,
// and written again as it would.
func TestFormsAgreeOnWhatIsNearlyWritten(t *testing.T) {
	var names []string
	written := map[string][]string{}
	for _, s := range writeStream(t, NewCodec()) {
		written[s.Type] = append(written[s.Type], string(s.Data))
		written["metadata"] = append(written["metadata"], string(s.Metadata))
	}
	written["response"] = []string{`{"media_type":"a/b","text":"body"}`, `{"media_type":"","base64":"/w=="}`}
	for name := range written {
		names = append(names, name)
	}
	slices.Sort(names)
	pieces := snippets()
	property := func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "form")
		data := rapid.SampledFrom(written[name]).Draw(t, "written")
		for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "edits") {
			from := rapid.OneOf(rapid.SampledFrom(append(borders(data), 0)), rapid.IntRange(0, len(data))).Draw(t, "from")
			to := min(len(data), from+rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3, 8, 20}).Draw(t, "cut"))
			piece := rapid.SampledFrom(pieces).Draw(t, "piece")
			if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
				piece = ""
			}
			data = data[:from] + piece + data[to:]
		}
		if err := forms()[name]([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 { // one run has too few of so many texts
		rapid.Check(t, property)
	}
}

// borders are where the parts of a JSON text begin and end.
func borders(data string) (all []int) {
	for i := range len(data) {
		if strings.IndexByte(`{}:,"`, data[i]) >= 0 {
			all = append(all, i, i+1)
		}
	}
	return all
}
