package kurrent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
)

// class says what an error of the client means for the request.
type class int

const (
	// unknown: the request may or may not have been carried out. It is what every error
	// is that is not known to be anything better.
	unknown class = iota
	// conflict: the stream is at another revision, perhaps one that cannot be read yet.
	conflict
	// absent: there is no such stream, or it was deleted so that it can be written to again.
	absent
	// tombstone: the stream was deleted for good.
	tombstone
	// notExecuted: it is certain that nothing was done; it may be tried again.
	notExecuted
	// refused: it is certain that nothing was done, and trying again will not help.
	refused
)

// byCode is the table of the client's error codes. Those that are not in it are unknown:
// DeadlineExceeded, Aborted, Unavailable, Unknown, and whatever a later server thinks of.
var byCode = map[esdb.ErrorCode]class{
	esdb.ErrorCodeWrongExpectedVersion: conflict,
	esdb.ErrorCodeResourceNotFound:     absent,
	esdb.ErrorCodeStreamDeleted:        tombstone,
	esdb.ErrorCodeConnectionClosed:     notExecuted,
	esdb.ErrorCodeNotLeader:            notExecuted,
	esdb.ErrorCodeUnauthenticated:      refused,
	esdb.ErrorCodeAccessDenied:         refused,
	esdb.ErrorCodeUnsupportedFeature:   refused,
}

// byStatus is the same for what the client lets through as it came from gRPC, and for
// what its own codes do not tell apart.
var byStatus = map[codes.Code]class{
	codes.Unauthenticated:  refused,
	codes.PermissionDenied: refused,
	codes.Unimplemented:    refused,
	codes.InvalidArgument:  refused,
}

// classOf says what an error of the client means. The client's own function for it does
// not see through wrapped errors, and takes nil for an error.
func classOf(err error) class {
	var ours *hung
	if errors.As(err, &ours) {
		return unknown
	}
	var client *esdb.Error
	if errors.As(err, &client) {
		if c, ok := byCode[client.Code()]; ok {
			return c
		}
	}
	if s, ok := status.FromError(err); ok {
		return byStatus[s.Code()]
	}
	return unknown
}

// spent reports whether the client that returned an error is to be replaced. A client
// whose discovery failed is closed for good. One that was told that its node is
// unavailable would look for another one and forget to close the connection that it had;
// one that is replaced at once closes it. Reads that cannot be started do not even make
// it look.
func spent(err error) bool {
	var client *esdb.Error
	if errors.As(err, &client) {
		switch client.Code() {
		case esdb.ErrorCodeConnectionClosed, esdb.ErrorUnavailable:
			return true
		}
	}
	s, ok := status.FromError(err)
	return ok && s.Code() == codes.Unavailable
}

// hung is the error of a call that did not come back in time and was left to itself.
type hung struct{ cause error }

func (h *hung) Error() string { return "the client did not come back: " + h.cause.Error() }

func (h *hung) Unwrap() error { return h.cause }

// panicked is the error of a call in which the client panicked.
type panicked struct{ value any }

func (p *panicked) Error() string { return fmt.Sprintf("the client panicked: %v", p.value) }

// Refused is returned when the server will not do what it was asked: it does not take
// the credentials or does not allow it, it is too old, or the request is over a limit of
// its. Nothing was done, and trying again will not help before that has changed.
type Refused struct {
	// Reason is a clause that says what the server refuses.
	Reason string
	// Try says what can be done about it, as an instruction.
	Try string
	// Err is what the server said.
	Err error

	forbidden bool
}

func (r *Refused) Error() string { return "kurrent: " + r.Reason + "; " + r.Try + ": " + r.Err.Error() }

// Unwrap returns what the server said.
func (r *Refused) Unwrap() error { return r.Err }

// Is reports whether the user is to blame: such an error is [eventlog.ErrForbidden].
func (r *Refused) Is(target error) bool { return target == eventlog.ErrForbidden && r.forbidden }

// refusal says in words what the server refuses.
func refusal(what string, err error) *Refused {
	code := status.Code(err)
	var client *esdb.Error
	if errors.As(err, &client) {
		switch client.Code() {
		case esdb.ErrorCodeUnauthenticated:
			code = codes.Unauthenticated
		case esdb.ErrorCodeAccessDenied:
			code = codes.PermissionDenied
		case esdb.ErrorCodeUnsupportedFeature:
			code = codes.Unimplemented
		default:
			code = status.Code(client.Err())
		}
	}
	r := &Refused{Err: err}
	switch code {
	case codes.Unauthenticated:
		r.forbidden = true
		r.Reason, r.Try = "the server does not take the credentials for "+what, "check the user and the password in the URL"
	case codes.PermissionDenied:
		r.forbidden = true
		r.Reason, r.Try = "the user is not allowed "+what, "use another user, or change the access control list (see holdfast doctor)"
	case codes.Unimplemented:
		r.Reason, r.Try = "the server cannot do "+what, "check that the URL names a KurrentDB or EventStoreDB (23.10 or later)"
	default:
		r.Reason, r.Try = "the server finds "+what+" invalid", "check the server's limits (MaxAppendSize at least 2 MiB), and that a position is one of this very log"
	}
	return r
}

// because wraps the errors of a call that was given up: the reason to give up, if there
// is one, and what the last try came to.
func because(sentinel error, ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil && last == nil:
		return sentinel
	case cause == nil:
		return fmt.Errorf("%w: %w", sentinel, last)
	case last == nil || errors.Is(last, cause) || errors.Is(last, io.EOF):
		return fmt.Errorf("%w: %w", sentinel, cause)
	}
	return fmt.Errorf("%w: %w; before that: %w", sentinel, cause, last)
}
