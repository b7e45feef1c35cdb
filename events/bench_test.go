package events

import "testing"

func BenchmarkChain(b *testing.B) {
	codec := NewCodec()
	b.Run("append", func(b *testing.B) {
		story, m := sample(), sampleMetadata()
		b.ReportAllocs()
		for b.Loop() {
			chain := codec.Chain("stream")
			for _, e := range story[:4] {
				if _, _, err := chain.Append(sampleID(0), e, m); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		story := writeStream(b, codec)[:4]
		b.ReportAllocs()
		for b.Loop() {
			chain := codec.Chain("stream")
			for _, s := range story {
				if _, err := chain.Read(s); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
