// cert-manager's controllers and its CA injector in one process. cert-manager's own programs are modules that no proxy
// has, as they replace their dependencies with folders; the controllers are in the module that they wire up.
// Issuers that need a network (ACME, Vault, Venafi) are left out.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	logf "github.com/cert-manager/cert-manager/pkg/logs"

	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

const workers = 2

func main() {
	flags := flag.NewFlagSet("cert-manager", flag.ExitOnError) // a library takes --kubeconfig of the common set
	kubeconfig := flags.String("kubeconfig", "", "cluster to work on")
	namespace := flags.String("namespace", "cert-manager", "where Secrets of ClusterIssuers are")
	_ = flags.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ctrl.SetLogger(logf.Log)
	if err := run(ctx, *kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run works until the context ends or one part fails.
func run(parent context.Context, kubeconfig, namespace string) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	parts, start, err := controllers(ctx, kubeconfig, namespace)
	if err != nil {
		return err
	}
	manager, err := injector(ctx, kubeconfig)
	if err != nil {
		return err
	}
	parts = append(parts, func() error { return manager.Start(ctx) })
	start()
	failed := make(chan error, len(parts))
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() {
			if err := part(); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// controllers makes what issues certificates. The informers are to be started when all controllers have asked for theirs.
func controllers(ctx context.Context, kubeconfig, namespace string) ([]func() error, func(), error) {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   50,
		KubernetesAPIBurst: 100,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return nil, nil, err
	}
	var parts []func() error
	for name, make := range controller.Known() {
		made, err := make(factory)
		if err != nil {
			return nil, nil, fmt.Errorf("controller %s: %w", name, err)
		}
		parts = append(parts, func() error { return made.Run(workers, ctx) })
	}
	shared, err := factory.Build()
	if err != nil {
		return nil, nil, err
	}
	start := func() {
		shared.SharedInformerFactory.Start(ctx.Done())
		shared.KubeSharedInformerFactory.Start(ctx.Done())
		shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	}
	return parts, start, nil
}

// injector makes what puts CAs into the objects that have cert-manager's annotations.
func injector(ctx context.Context, kubeconfig string) (ctrl.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "cert-manager-cainjector"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kscheme.AddToScheme, cmapi.AddToScheme, apiext.AddToScheme, apireg.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, err
	}
	return manager, cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	})
}
