package kurrent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// body is as long as an event of the ledger.
var body = append([]byte(`{"text":"`), append(bytes.Repeat([]byte("x"), 300), `"}`...)...)

func fresh() eventlog.Event {
	return eventlog.Event{ID: uuid.New(), Type: "KeyClaimed", Data: body, Metadata: body}
}

// sides are the client by itself, and the log that stands on it.
func sides(b *testing.B, run func(b *testing.B, server *kurrentnode.Node, client *esdb.Client, log *Log)) {
	b.Run("client", func(b *testing.B) {
		server := kurrentnode.Keep(b)
		config, err := esdb.ParseConnectionString(server.URL())
		if err != nil {
			b.Fatal(err)
		}
		config.Logger = esdb.NoopLogging()
		client, err := esdb.NewClient(config)
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		run(b, server, client, nil)
	})
	b.Run("log", func(b *testing.B) {
		server := kurrentnode.Keep(b)
		log, err := Open(context.Background(), server.URL(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer log.Close()
		run(b, server, nil, log)
	})
}

// BenchmarkAppend appends one event at a time, each to the head of a stream of ten.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			sides(b, func(b *testing.B, _ *kurrentnode.Node, client *esdb.Client, log *Log) {
				var streams atomic.Int64
				b.SetParallelism(max(1, callers/2)) // times GOMAXPROCS, which is 2 where this is compared
				run := func(next func() bool) {
					for {
						stream := fmt.Sprintf("withdrawal-%d", streams.Add(1))
						for at := range uint64(10) {
							if !next() {
								return
							}
							if err := appendOne(client, log, stream, at); err != nil {
								b.Error(err)
								return
							}
						}
					}
				}
				if callers == 1 {
					run(b.Loop)
					return
				}
				b.RunParallel(func(pb *testing.PB) { run(pb.Next) })
			})
		})
	}
}

func appendOne(client *esdb.Client, log *Log, stream string, at uint64) error {
	e := fresh()
	if log != nil {
		_, err := log.Append(context.Background(), eventlog.StreamAppend{Stream: stream, At: at, Events: []eventlog.Event{e}})
		return err
	}
	_, err := client.AppendToStream(context.Background(), stream, esdb.AppendToStreamOptions{ExpectedRevision: expected(at)},
		esdb.EventData{EventID: e.ID, EventType: e.Type, Data: e.Data, Metadata: e.Metadata, ContentType: esdb.ContentTypeJson})
	return err
}

// fill appends ten thousand events to streams of as many as is said.
func fill(b *testing.B, server *kurrentnode.Node, each int) (streams int) {
	log, err := Open(context.Background(), server.URL(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	streams = 10_000 / each
	for i := range streams {
		for at := 0; at < each; at += 100 {
			a := eventlog.StreamAppend{Stream: fmt.Sprintf("s%d", i), At: uint64(at)}
			for range min(100, each) {
				a.Events = append(a.Events, fresh())
			}
			if _, err := log.Append(context.Background(), a); err != nil {
				b.Fatal(err)
			}
		}
	}
	return streams
}

// drain reads to the end of what the client reads.
func drain(b *testing.B, reading *esdb.ReadStream, err error) (n int) {
	if err != nil {
		b.Fatal(err)
	}
	defer reading.Close()
	for {
		_, err := reading.Recv()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkReadAll reads ten thousand events.
func BenchmarkReadAll(b *testing.B) {
	sides(b, func(b *testing.B, server *kurrentnode.Node, client *esdb.Client, log *Log) {
		fill(b, server, 1000)
		for b.Loop() {
			n := 0
			if log == nil {
				reading, err := client.ReadAll(context.Background(), esdb.ReadAllOptions{From: esdb.Start{}}, math.MaxUint64)
				n = drain(b, reading, err)
			} else {
				for _, err := range log.ReadAll(context.Background(), eventlog.Start) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
			}
			if n < 10_000 {
				b.Fatalf("%d events", n)
			}
		}
		b.ReportMetric(10_000*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
}

// BenchmarkReadStream reads streams of ten events.
func BenchmarkReadStream(b *testing.B) {
	sides(b, func(b *testing.B, server *kurrentnode.Node, client *esdb.Client, log *Log) {
		streams := fill(b, server, 10)
		for i := 0; b.Loop(); i++ {
			stream, n := fmt.Sprintf("s%d", i%streams), 0
			if log == nil {
				reading, err := client.ReadStream(context.Background(), stream, esdb.ReadStreamOptions{From: esdb.Start{}}, math.MaxUint64)
				n = drain(b, reading, err)
			} else {
				for _, err := range log.ReadStream(context.Background(), stream, 0) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
			}
			if n != 10 {
				b.Fatalf("%d events", n)
			}
		}
	})
}
