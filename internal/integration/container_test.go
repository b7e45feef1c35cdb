//go:build containers

package integration

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const nodePort = "2113/tcp"

// TestContainer runs the suite on a node in a container.
func TestContainer(t *testing.T) {
	host, err := engine(t.Context())
	if err != nil {
		t.Skipf("no container engine answers, so there is no server to test on: start Docker or Podman, or name a server by HOLDFAST_TEST_ESDB (%v)", err)
	}
	bind := netip.IPv4Unspecified()
	if host == "localhost" || host == "127.0.0.1" {
		host = "127.0.0.1" // by its name the client might take it for an IPv6 address
		bind = netip.MustParseAddr(host)
	}
	name, start := image()
	port := freePort(t)
	c, err := testcontainers.Run(t.Context(), name,
		testcontainers.WithEnv(settings(start)),
		testcontainers.WithExposedPorts(nodePort),
		// A port that the engine chooses would be another one after a restart.
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.PortBindings = network.PortMap{network.MustParsePort(nodePort): {{HostIP: bind, HostPort: port}}}
		}),
		testcontainers.WithWaitStrategyAndDeadline(3*time.Minute, alive()),
	)
	testcontainers.CleanupContainer(t, c)
	if err != nil {
		t.Fatalf("image %s does not start: %v\n%s", name, err, logs(c))
	}
	s := &server{url: "esdb://" + net.JoinHostPort(host, port) + "?tls=false", restarts: 2}
	s.restart = func(t *testing.T) {
		t.Helper()
		patience := 30 * time.Second
		if err := c.Stop(t.Context(), &patience); err != nil {
			t.Fatalf("the node does not stop: %v", err)
		}
		if err := c.Start(t.Context()); err != nil { // waits as the first start did
			t.Fatalf("the node does not start again: %v\n%s", err, logs(c))
		}
	}
	t.Logf("testing on %s, at %s", name, s.url)
	suite(t, s)
}

// alive waits until the node says that it lives. It may have no leader then: see
// server.ready.
func alive() wait.Strategy {
	return wait.ForHTTP("/health/live").WithPort(nodePort).WithStartupTimeout(3 * time.Minute).
		WithStatusCodeMatcher(func(status int) bool { return status/100 == 2 })
}

// engine returns where the container engine's ports are, or why there is no engine. Its
// client panics where it finds none.
func engine(ctx context.Context) (host string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer provider.Close()
	if err := provider.Health(ctx); err != nil {
		return "", err
	}
	return provider.DaemonHost(ctx)
}

// image returns what HOLDFAST_TEST_IMAGE names, and what the names of its settings begin
// with.
func image() (name, settings string) {
	switch name = cmp.Or(os.Getenv("HOLDFAST_TEST_IMAGE"), "kurrentdb"); name {
	case "kurrentdb":
		name = imageKurrentDB
	case "eventstoredb":
		name = imageEventStoreDB
	}
	if strings.Contains(name, "kurrentdb") {
		return name, "KURRENTDB_"
	}
	return name, "EVENTSTORE_"
}

// settings are those of a single node without users. The append size is what versions up to
// 25.0 have to be told.
func settings(start string) map[string]string {
	all := map[string]string{
		start + "CLUSTER_SIZE":    "1",
		start + "INSECURE":        "true",
		start + "RUN_PROJECTIONS": "None",
	}
	if start == "EVENTSTORE_" {
		all[start+"MAX_APPEND_SIZE"] = fmt.Sprint(2 << 20)
	}
	return all
}

// freePort returns a port of this machine that nobody uses.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// logs returns what a container has said, as far as it can be had.
func logs(c *testcontainers.DockerContainer) string {
	if c == nil {
		return ""
	}
	said, err := c.Logs(context.Background())
	if err != nil {
		return err.Error()
	}
	defer said.Close()
	all, err := io.ReadAll(said)
	if err != nil {
		return err.Error()
	}
	return string(all)
}
