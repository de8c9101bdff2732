// Asks etcd in a Pod for its members and its state, through ports forwarded by the API server: client-go's plain SPDY
// under etcd's own client, which is how control plane providers written in Go do it. Prints JSON.
//
//	etcdforward -kubeconfig FILE -pod NAME -ca FILE -identity FILE [-n NAMESPACE] [-host 127.0.0.1] [-port 2379] [-websocket]
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

type options struct {
	kubeconfig, namespace, pod, host, ca, identity string
	port                                           int
	websocket                                      bool
}

// A data stream that passes for a connection. Each has a session of its own, closed with it.
type connection struct {
	httpstream.Stream
	session httpstream.Connection
}

func (c connection) Close() error                     { return c.session.Close() }
func (c connection) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "forwarded", Net: "unix"} }
func (c connection) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "forwarded", Net: "unix"} }
func (c connection) SetDeadline(time.Time) error      { return nil }
func (c connection) SetReadDeadline(time.Time) error  { return nil }
func (c connection) SetWriteDeadline(time.Time) error { return nil }

var dialled atomic.Int32

func dialer(config *rest.Config, o options) (httpstream.Dialer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(o.namespace).Name(o.pod).SubResource("portforward").URL()
	if o.websocket {
		return portforward.NewSPDYOverWebsocketDialer(url, config)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), nil
}

func dial(d httpstream.Dialer, o options) (net.Conn, error) {
	session, protocol, err := d.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	if protocol != portforward.PortForwardProtocolV1Name {
		return nil, fmt.Errorf("the server chose %q", protocol)
	}
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(o.port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failures, err := session.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	if err := failures.Close(); err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := session.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	dialled.Add(1)
	return connection{data, session}, nil
}

func run(o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	d, err := dialer(config, o)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(o.ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	identity, err := tls.LoadX509KeyPair(o.identity, o.identity)
	if err != nil {
		return err
	}
	endpoint := fmt.Sprintf("%s:%d", o.host, o.port)
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: 20 * time.Second,
		DialOptions: []grpc.DialOption{
			grpc.WithBlock(), // as control plane providers do
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dial(d, o) }),
		},
		TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{identity}},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	members, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		return err
	}
	names := []string{}
	for _, member := range members.Members {
		names = append(names, member.Name)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"members": names, "leads": status.Leader == status.Header.MemberId, "version": status.Version, "dialled": dialled.Load(),
	})
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "")
	flag.StringVar(&o.namespace, "n", "kube-system", "")
	flag.StringVar(&o.pod, "pod", "", "")
	flag.StringVar(&o.host, "host", "127.0.0.1", "what etcd's certificate names")
	flag.StringVar(&o.ca, "ca", "", "PEM of etcd's authority")
	flag.StringVar(&o.identity, "identity", "", "PEM of a client's key and certificate")
	flag.IntVar(&o.port, "port", 2379, "")
	flag.BoolVar(&o.websocket, "websocket", false, "SPDY inside a WebSocket")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
