package main

import (
	"context"

	"holdfast/submissions"
)

func (c *call) request() command {
	account := needed("account", "NAME", "the account that pays")
	reference := needed("reference", "TEXT", "the business reference, unique within the account")
	amount := needed("amount", "DECIMAL", "the amount, such as 10.25")
	currency := needed("currency", "CODE", "the currency, such as EUR")
	destination := needed("destination", "TEXT", "where the money is to go")
	return command{
		name:  "request",
		usage: "record a withdrawal and print its id",
		description: []string{
			"Records money that should leave once, and mints its id. Requesting the same again prints the same; " +
				"the same account and reference with other details is a conflict (reference-reused). " +
				"Nothing is sent: see submit. The log is created where there is none.",
		},
		examples: []string{
			"request --account alice --reference order-17 --amount 10.25 --currency EUR --destination DE89370400440532013000",
		},
		options: []*option{account, reference, amount, currency, destination},
		run: func(ctx context.Context) error {
			return c.withLedger(ctx, creates, func(ledger *submissions.Ledger) error {
				status, err := ledger.Request(ctx, submissions.Request{
					By: c.by(), Account: account.value, Reference: reference.value,
					Amount: amount.value, Currency: currency.value, Destination: destination.value,
				})
				if err != nil {
					return err
				}
				d := newRequestDocument(status)
				return c.result(d, d.page)
			})
		},
	}
}
