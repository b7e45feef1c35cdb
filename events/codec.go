package events

import (
	"encoding/json"
	"fmt"
)

// Upcast lifts an event's stored data from one schema version to the next. It is pure,
// and it must accept every event of its version that was ever written.
type Upcast func(data json.RawMessage) (json.RawMessage, error)

// Codec knows every event type, its schema versions, and how to read each of them.
type Codec struct{ byType map[string]definition }

type definition struct {
	name    string
	upcasts []Upcast // upcasts[i] lifts version i+1; the current version is len+1
	write   func(to *object, e Event) error
	read    func(data []byte) (Event, error)
}

func (d definition) version() int { return len(d.upcasts) + 1 }

// NewCodec returns the codec for all event types of this package.
func NewCodec() *Codec {
	return newCodec(
		define[WithdrawalRequested](),
		define[KeyReserved](),
		define[KeyClaimed](),
		define[SendAttempted](),
		define[SendRefused](),
		define[SendUnconfirmed](),
		define[OutcomeResolved](withoutFee),
		define[Released](),
		define[LateOutcomeReported](withoutFee),
		define[CopyBegun](),
		define[CopyAdvanced](),
		define[CopyCompleted](),
		define[LedgerMoved](),
		define[LedgerKept](),
	)
}

func newCodec(definitions ...definition) *Codec {
	c := &Codec{byType: make(map[string]definition, len(definitions))}
	for _, d := range definitions {
		c.byType[d.name] = d
	}
	return c
}

// define registers an event type; its upcasts, oldest first, say how many schema
// versions it has had.
func define[E Event, P formOf[E]](upcasts ...Upcast) definition {
	var zero E
	return definition{
		name:    zero.Type(),
		upcasts: upcasts,
		write: func(to *object, e Event) error {
			own, ok := e.(E)
			if !ok {
				return fmt.Errorf("a %T is not the event of type %s", e, zero.Type())
			}
			to.whole(P(&own))
			return to.err
		},
		read: func(data []byte) (Event, error) {
			e, err := unmarshalForm[E, P](data)
			if err != nil {
				return nil, err
			}
			return e, e.validate()
		},
	}
}

// withoutFee lifts an outcome, or a late answer, from version 1, which knew nothing of fees
// and of the rail's time: they stay unsaid.
func withoutFee(data json.RawMessage) (json.RawMessage, error) { return data, nil }

// encode writes the stored data of an event, in its type's current version.
func (c *Codec) encode(to *object, e Event) (version int, err error) {
	d, ok := c.byType[e.Type()]
	if !ok {
		return 0, fmt.Errorf("event type %q is not registered", e.Type())
	}
	if err := e.validate(); err != nil {
		return 0, fmt.Errorf("%s: %w", e.Type(), err)
	}
	return d.version(), d.write(to, e)
}

// decode reads stored data of a type and version, lifting it to the current version.
func (c *Codec) decode(eventType string, version int, data []byte) (Event, FaultKind, error) {
	d, ok := c.byType[eventType]
	if !ok {
		return nil, FaultUnknownVersion, fmt.Errorf("event type %s is unknown to this version of holdfast; a newer one may have written it", Quote(eventType))
	}
	if version < 1 || version > d.version() {
		return nil, FaultUnknownVersion, fmt.Errorf("%s has schema version %d, and this version of holdfast knows 1 to %d; a newer one may have written it", eventType, version, d.version())
	}
	for v := version; v < d.version(); v++ {
		lifted, err := d.upcasts[v-1](data)
		if err != nil {
			return nil, FaultContent, fmt.Errorf("%s cannot be lifted from schema version %d: %w", eventType, v, err)
		}
		data = lifted
	}
	e, err := d.read(data)
	if err != nil {
		return nil, FaultContent, fmt.Errorf("%s: %w", eventType, err)
	}
	return e, "", nil
}
