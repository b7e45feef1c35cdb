package kurrentnode

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// User is somebody who may use a node: to append to streams and to read them.
type User struct {
	Password string
	// Admin may also read the whole log and the server's own streams, change the metadata
	// of streams, and delete them.
	Admin bool
	// Blind may not read the metadata of streams, which others may.
	Blind bool
}

// Users are the users of a node, by name.
type Users map[string]User

// Guard starts a node that keeps streams, behind TLS, for users. It returns the file of the
// authority that vouches for the node's certificate.
func Guard(t testing.TB, users Users) (n *Node, authority string) {
	t.Helper()
	certificate, authority := certify(t)
	n = &Node{users: users, Streams: newStreams(), security: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	n.Listen(t)
	t.Cleanup(n.Stop)
	return n, authority
}

// certify makes an authority, writes its certificate to a file, and makes another that it
// vouches for.
func certify(t testing.TB) (certificate tls.Certificate, authority string) {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sign := func(c, by *x509.Certificate, of, with *ecdsa.PrivateKey) []byte {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, by, &of.PublicKey, with)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority for tests"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	node := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node for tests"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	rootKey, nodeKey := key(), key()
	rootDER := sign(root, root, rootKey, rootKey)
	nodeDER := sign(node, root, nodeKey, rootKey)
	authority = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{nodeDER}, PrivateKey: nodeKey}, authority
}

// right is what a request needs.
type right int

const (
	ordinary right = iota
	toMetadata
	administrator
)

// writing returns the right that an append needs.
func writing(stream string) right {
	if strings.HasPrefix(stream, "$") {
		return administrator
	}
	return ordinary
}

// reading returns the right that a reading needs.
func reading(o *streams.ReadReq_Options) right {
	name := string(o.GetStream().GetStreamIdentifier().GetStreamName())
	of, metadata := metadataOf(name)
	switch {
	case metadata && !strings.HasPrefix(of, "$"):
		return toMetadata
	case o.GetAll() != nil, strings.HasPrefix(name, "$"):
		return administrator
	}
	return ordinary
}

// of returns who makes a request. There is nobody to ask where a node has no users.
func (u Users) of(ctx context.Context) (User, error) {
	if u == nil {
		return User{}, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	header := strings.Join(md.Get("authorization"), "")
	if header == "" {
		return User{}, status.Error(codes.PermissionDenied, "Access Denied")
	}
	encoded, _ := strings.CutPrefix(header, "Basic ")
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	name, password, _ := strings.Cut(string(decoded), ":")
	user, known := u[name]
	if err != nil || !known || user.Password != password {
		return User{}, status.Error(codes.Unauthenticated, "wrong user or password")
	}
	return user, nil
}

// allow says no to a request whose user has not the right to make it.
func (u Users) allow(r grpc.ServerStream, needs right) error {
	user, err := u.of(r.Context())
	if err != nil || u == nil {
		return err
	}
	if needs == administrator && !user.Admin || needs == toMetadata && user.Blind {
		return denied(r)
	}
	return nil
}
