// A program of a Nutanix user in Go: prism-go-client, and nothing of ours.
//
//	client HOST PORT
//
// Each scenario prints a line of JSON: its name, and what went wrong or nothing. Certificates are verified; SSL_CERT_FILE
// names the authority.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	prismgoclient "github.com/nutanix-cloud-native/prism-go-client"
)

var (
	host, port string
	ctx        = context.Background()
)

type scenario struct {
	name string
	run  func() error
}

func credentials() prismgoclient.Credentials {
	return prismgoclient.Credentials{
		URL: host + ":" + port, Endpoint: host + ":" + port, Port: port, Username: "admin", Password: "password",
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client HOST PORT")
		os.Exit(2)
	}
	host, port = os.Args[1], os.Args[2]
	// Clients log to standard output, which is ours: results go where they can't.
	out := os.Stdout
	os.Stdout = os.Stderr
	encoder := json.NewEncoder(out)
	for _, each := range append(v3Scenarios(), v4Scenarios()...) {
		problem := ""
		if err := guarded(each.run); err != nil {
			problem = err.Error()
		}
		_ = encoder.Encode(map[string]string{"scenario": each.name, "problem": problem})
	}
}

func guarded(run func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	return run()
}

// awaited calls until it says that it is done.
func awaited(what string, done func() (bool, error)) error {
	for i := 0; i < 300; i++ {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("%s never happened", what)
}

func must(ok bool, text string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(text, args...)
}
