package kurrent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

// Examine implements [eventlog.Examined]: whether the leader answers; whether the user may
// append and read "$all"; whether any stream of this log has metadata that takes events
// away; and who may delete. It writes nothing: the append that it tries states a revision
// that no stream has. It needs the rights of an administrator to see everything, and says
// so where it has not.
func (l *Log) Examine(ctx context.Context) ([]eventlog.Finding, error) {
	if err := l.begin(); err != nil {
		return nil, err
	}
	defer l.running.Done()
	var findings []eventlog.Finding
	for _, check := range []func(context.Context) eventlog.Finding{
		l.checkLeader, l.checkAppend, l.checkAll, l.checkDefaults, l.checkStreams,
	} {
		f := check(ctx)
		if err := context.Cause(ctx); err != nil {
			return findings, err
		}
		if findings = append(findings, f); f.Grade == eventlog.Unreachable {
			return findings, nil // the others would only wait for the same
		}
	}
	return findings, nil
}

// probeStream is a stream that there never is.
const probeStream = "holdfast-probe"

// failed is the finding of a check that could not be made.
func failed(check string, err error, forbidden eventlog.Finding) eventlog.Finding {
	var r *Refused
	if errors.As(err, &r) {
		forbidden.Check, forbidden.Detail = check, r.Reason
		return forbidden
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Unreachable, Detail: err.Error(),
		Remedy: "check that the servers run and have elected a leader, and that the URL names all of them"}
}

func (l *Log) checkLeader(ctx context.Context) eventlog.Finding {
	const check = "leader"
	if err := l.probe(ctx); err != nil {
		return failed(check, err, eventlog.Finding{Grade: eventlog.Forbidden, Remedy: "give the user the right to read streams ($r)"})
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "the leader answers, and streams may be read"}
}

func (l *Log) checkAppend(ctx context.Context) eventlog.Finding {
	const check = "append"
	event := eventlog.Event{ID: [16]byte{1}, Type: "HoldfastProbe"}
	_, err := patiently(ctx, l, "appending", func(ctx context.Context, c *client) (struct{}, error) {
		options := esdb.AppendToStreamOptions{ExpectedRevision: esdb.Revision(math.MaxInt64 - 1), Deadline: &l.CallTimeout, RequiresLeader: true}
		_, err := c.AppendToStream(ctx, l.prefix+probeStream, options, propose([]eventlog.Event{event})...)
		if err != nil && classOf(err) == conflict {
			return struct{}{}, nil // it may, and it did not
		}
		return struct{}{}, err
	})
	switch {
	case err != nil && classOf(err) == tombstone:
		err = nil
	case err != nil:
		return failed(check, err, eventlog.Finding{Grade: eventlog.Forbidden, Remedy: "give the user the right to write to streams ($w); without it this log is for reading only"})
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "streams may be appended to"}
}

func (l *Log) checkAll(ctx context.Context) eventlog.Finding {
	const check = "read all"
	if _, err := l.allPage(ctx, eventlog.Start, esdb.End{}, esdb.Backwards, 1); err != nil {
		return failed(check, err, eventlog.Finding{Grade: eventlog.Forbidden,
			Remedy: `give the user the right to read "$all" (by default it is the administrators'); without it verify, in-flight and followers cannot work`})
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "the whole log may be read"}
}

// accessList is who may do what, as far as it could take events away: delete, and write
// the metadata that does so.
type accessList struct {
	Delete    roles `json:"$d"`
	WriteMeta roles `json:"$mw"`
}

// roles is one role, or a list of them.
type roles []string

// UnmarshalJSON implements [json.Unmarshaler].
func (r *roles) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*r = roles{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(r))
}

// admins reports whether nobody but administrators is in a list. A list that is not
// given, and an empty one, is everybody's.
func (r roles) admins() bool {
	return len(r) > 0 && !slices.ContainsFunc(r, func(role string) bool { return role != "$admins" })
}

const settingsRemedy = `as an administrator, append to the stream "$settings" an event with the data {"$userStreamAcl":{"$r":"$all","$w":"$all","$d":"$admins","$mr":"$all","$mw":"$admins"}}, with your own roles in place of "$all"`

// checkDefaults looks at who may delete where a stream does not say so itself.
func (l *Log) checkDefaults(ctx context.Context) eventlog.Finding {
	const check = "deletion"
	if !l.secure {
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: "the server is used without TLS and knows no users, so whoever reaches it may delete streams",
			Remedy: "keep it to a network of its own, or run it with certificates and users"}
	}
	data, err := l.lastOf(ctx, "$settings")
	if err != nil {
		return failed(check, err, eventlog.Finding{Grade: eventlog.Risky, Remedy: "run this once as an administrator, who may read $settings"})
	}
	var settings struct {
		User accessList `json:"$userStreamAcl"`
	}
	switch err := json.Unmarshal(data, &settings); {
	case data == nil:
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: "every user may delete streams, as the server's defaults have it", Remedy: settingsRemedy}
	case err != nil:
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: "$settings cannot be understood: " + err.Error(), Remedy: settingsRemedy}
	case !settings.User.Delete.admins() || !settings.User.WriteMeta.admins():
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Remedy: settingsRemedy,
			Detail: fmt.Sprintf("streams may be deleted by %v, and their metadata written by %v", settings.User.Delete, settings.User.WriteMeta)}
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "nobody but administrators may delete streams"}
}

// checkStreams looks at the metadata of every stream that has any.
func (l *Log) checkStreams(ctx context.Context) eventlog.Finding {
	const check = "retention"
	streams, err := l.scanMetadata(ctx)
	if err != nil {
		return failed(check, err, eventlog.Finding{Grade: eventlog.Risky, Remedy: `run this once as an administrator, who may read "$all"`})
	}
	var losing, open []string
	for stream, m := range streams {
		switch {
		case m.truncates() || m.MaxCount != nil || m.MaxAge != nil:
			losing = append(losing, stream)
		case m.opens():
			open = append(open, stream)
		}
	}
	switch {
	case len(losing) > 0:
		return eventlog.Finding{Check: check, Grade: eventlog.Losing, Detail: "events are taken away from " + some(losing) + " ($tb, $maxCount or $maxAge in the stream's metadata, or a deletion)",
			Remedy: "find out who did it before the next scavenge removes the events for good; then write the metadata without these, and run holdfast verify"}
	case len(open) > 0:
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: "others than administrators may delete " + some(open),
			Remedy: "take $acl out of the metadata of these streams, or leave $d and $mw to $admins in it"}
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "no stream has metadata that takes events away"}
}

// opens reports whether the stream's own access list lets others than administrators
// delete. A list that leaves this out, and the name of a default one, leave it to the
// default.
func (m limits) opens() bool {
	var list accessList
	if len(m.ACL) == 0 || json.Unmarshal(m.ACL, &list) != nil {
		return false
	}
	return len(list.Delete) > 0 && !list.Delete.admins() || len(list.WriteMeta) > 0 && !list.WriteMeta.admins()
}

// some names a few streams of a list.
func some(streams []string) string {
	slices.Sort(streams)
	const most = 5
	if len(streams) <= most {
		return strings.Join(streams, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(streams[:most], ", "), len(streams)-most)
}

// scanMetadata returns the newest metadata of every stream of this log that has any. It
// asks the server for the metadata streams alone, and ends when it has caught up.
func (l *Log) scanMetadata(ctx context.Context) (map[string]limits, error) {
	ctx, cancel := context.WithCancelCause(leader(ctx))
	defer cancel(nil)
	c, err := l.clients.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer l.clients.release(c)
	silence := time.AfterFunc(l.CallTimeout, func() { cancel(errTimeout) })
	defer silence.Stop()
	filter := &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{metaPrefix + l.prefix}}
	subscription, err := apart(ctx, l, c, func(ctx context.Context) (*esdb.Subscription, error) {
		return c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: filter, MaxSearchWindow: 512, CheckpointInterval: 1, RequiresLeader: true})
	}, func(s *esdb.Subscription) { _ = s.Close() })
	if err != nil {
		if classOf(err) == refused {
			err = refusal(`reading "$all"`, err)
		}
		return nil, err
	}
	defer subscription.Close()
	found := map[string]limits{}
	for {
		event := subscription.Recv()
		silence.Reset(l.CallTimeout)
		switch {
		case event.SubscriptionDropped != nil:
			if cause := context.Cause(ctx); cause != nil {
				return nil, cause
			}
			return nil, event.SubscriptionDropped.Error
		case event.CaughtUp != nil:
			return found, nil
		case event.EventAppeared != nil:
			e := event.EventAppeared.OriginalEvent()
			stream, ours := strings.CutPrefix(e.StreamID, metaPrefix+l.prefix)
			if !ours || eventlog.ValidateStream(stream) != nil {
				continue // of one of the server's own streams
			}
			var m limits
			if err := json.Unmarshal(e.Data, &m); err == nil || len(e.Data) == 0 {
				found[stream] = m
			}
		}
	}
}
