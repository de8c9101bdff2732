// Prints how the fields of built-in kinds are numbered in Kubernetes' protobuf encoding, as JSON.
//
//	cd tools/kube && go run ./protobuf > ../../src/homeport/apiserver/http/protobuf.json
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Types that have a JSON form of their own.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "raw",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intstr",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "either",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "either",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "either",
}

// Name in JSON (none: its fields stand in its place), code of the type, and whether zero is left out.
type field [3]string

var messages = map[string]map[string]field{}

func typeName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

func code(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return code(t.Elem())
	}
	if name, ok := special[typeName(t)]; ok && name != "either" {
		return name
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Uint8:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if _, wrapped := reflect.PointerTo(t).MethodByName("Marshal"); wrapped {
			return "items:" + code(t.Elem())
		}
		return "list:" + code(t.Elem())
	case reflect.Map:
		return "map:" + code(t.Elem())
	case reflect.Struct:
		add(t)
		if special[typeName(t)] == "either" {
			return "either:" + typeName(t)
		}
		return typeName(t)
	}
	panic("no code for " + t.String())
}

func add(t reflect.Type) {
	if _, known := messages[typeName(t)]; known {
		return
	}
	fields := map[string]field{}
	messages[typeName(t)] = fields
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("protobuf")
		number := ""
		if parts := strings.Split(tag, ","); len(parts) > 1 {
			number = parts[1]
		}
		if number == "" && special[typeName(t)] == "either" {
			number = string(rune('1' + i))
		}
		if number == "" || tag == "-" {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && special[typeName(t)] == "either" {
			name = f.Name
		}
		zero := ""
		if strings.Contains(f.Tag.Get("json"), ",omit") && f.Type.Kind() != reflect.Pointer {
			zero = "omit"
		}
		fields[number] = field{name, code(f.Type), zero}
	}
}

func main() {
	for _, install := range []func() error{
		func() error { return apiextensions.AddToScheme(scheme.Scheme) },
		func() error { return apiregistration.AddToScheme(scheme.Scheme) },
	} {
		if err := install(); err != nil {
			panic(err)
		}
	}
	roots := map[string]string{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if wanted(gvk) {
			version := schema.GroupVersion{Group: gvk.Group, Version: gvk.Version}.String()
			roots[version+"/"+gvk.Kind] = code(t)
		}
	}
	roots["v1/DeleteOptions"] = code(reflect.TypeFor[metav1.DeleteOptions]())
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(map[string]any{"roots": roots, "messages": messages}); err != nil {
		panic(err)
	}
}

var groups = map[string]bool{
	"/v1": true, "apps/v1": true, "batch/v1": true, "policy/v1": true, "autoscaling/v1": true, "autoscaling/v2": true,
	"rbac.authorization.k8s.io/v1": true, "coordination.k8s.io/v1": true, "events.k8s.io/v1": true,
	"discovery.k8s.io/v1": true, "apiextensions.k8s.io/v1": true, "admissionregistration.k8s.io/v1": true,
	"authentication.k8s.io/v1": true, "authorization.k8s.io/v1": true, "certificates.k8s.io/v1": true,
	"storage.k8s.io/v1": true, "networking.k8s.io/v1": true, "scheduling.k8s.io/v1": true,
	"apiregistration.k8s.io/v1": true, "node.k8s.io/v1": true,
}

func wanted(gvk schema.GroupVersionKind) bool {
	if strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" {
		return false
	}
	if strings.HasPrefix(gvk.Kind, "API") && gvk.Kind != "APIService" {
		return false
	}
	return gvk.Kind != "Status" && groups[gvk.Group+"/"+gvk.Version]
}
