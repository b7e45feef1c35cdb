package simulated_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
)

// The environment of a child process: what it is to do, on which book, as which child.
const (
	childTask = "HOLDFAST_TEST_SIMULATED_TASK"
	childBook = "HOLDFAST_TEST_SIMULATED_BOOK"
	childName = "HOLDFAST_TEST_SIMULATED_NAME"
	// childGate is set when the child is to close file 3 once it is up, and to start
	// when file 4 ends.
	childGate = "HOLDFAST_TEST_SIMULATED_GATE"
)

// TestMain runs a child's task in place of the tests when the environment names one.
func TestMain(m *testing.M) {
	task := os.Getenv(childTask)
	if task == "" {
		os.Exit(m.Run())
	}
	if os.Getenv(childGate) != "" {
		if err := awaitGate(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := runChild(task, os.Getenv(childBook), os.Getenv(childName)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// awaitGate returns when every child is up.
func awaitGate() error {
	if err := os.NewFile(3, "ready").Close(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.NewFile(4, "gate"))
	return err
}

// runChild prints each reference once its payment has been acknowledged.
func runChild(task, path, name string) error {
	switch task {
	case "pay-50":
		return payFrom(5, func(worker, n int) (rail.Payment, bool) {
			return childPayment(name, worker, n), n < 10
		}, path, nil)
	case "pay-for-ever":
		return payFrom(4, func(worker, n int) (rail.Payment, bool) {
			return childPayment(name, worker, n), true
		}, path, nil)
	case "pay-20-tokens":
		return payFrom(4, func(_, n int) (rail.Payment, bool) {
			return childPayment("shared", 0, n), n < 20
		}, path, &simulated.Options{HonourToken: true})
	case "full-disk":
		return payOnFullDisk(path)
	default:
		fault, err := simulated.ParseFault(task)
		if err != nil {
			return err
		}
		return payFrom(1, func(_, n int) (rail.Payment, bool) {
			return payment("w1"), n < 1
		}, path, &simulated.Options{Fault: always(fault)})
	}
}

// payFrom sends what next gives, from so many workers, until it says that is all.
func payFrom(workers int, next func(worker, n int) (rail.Payment, bool), path string, opts *simulated.Options) error {
	r, err := simulated.Open(path, opts)
	if err != nil {
		return err
	}
	failures := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := 0; ; n++ {
				p, more := next(w, n)
				if !more {
					return
				}
				receipt, err := r.Send(context.Background(), p)
				if err != nil {
					failures[w] = err
					return
				}
				// One write for the line: the lines of workers do not mix.
				fmt.Println(receipt.Reference)
			}
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

// payOnFullDisk sends a payment that the file has no room for, and one when there is
// room again.
func payOnFullDisk(path string) error {
	r, err := simulated.Open(path, nil)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	full := syscall.Rlimit{Cur: uint64(info.Size()) + 50, Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		return err
	}
	if _, err := r.Send(context.Background(), payment("w-no-room")); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("Send without room: %v, want EFBIG", err)
	}
	if after, err := os.Stat(path); err != nil || after.Size() != info.Size() {
		return fmt.Errorf("the failed write left the book at %d bytes, want %d (%v)", after.Size(), info.Size(), err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	_, err = r.Send(context.Background(), payment("w-room"))
	return err
}

func childPayment(name string, worker, n int) rail.Payment {
	return payment(events.WithdrawalID("w-" + name + "-" + strconv.Itoa(worker) + "-" + strconv.Itoa(n)))
}

// payment is the first attempt to pay the withdrawal.
func payment(withdrawal events.WithdrawalID) rail.Payment {
	amount, err := events.ParseAmount("10.25")
	if err != nil {
		panic(err)
	}
	return rail.Payment{
		Withdrawal:  withdrawal,
		Account:     "acc-1",
		Amount:      amount,
		Currency:    "EUR",
		Destination: "DE02 <Zoë & Søn>",
		Token:       "token-" + string(withdrawal),
		Attempt:     1,
	}
}

// always fails every send the same way.
func always(f simulated.Fault) func(rail.Payment) simulated.Fault {
	return func(rail.Payment) simulated.Fault { return f }
}
