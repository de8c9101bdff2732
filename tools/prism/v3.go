package main

import (
	"encoding/base64"
	"fmt"
	"strings"

	v3 "github.com/nutanix-cloud-native/prism-go-client/v3"
	"k8s.io/utils/ptr"
)

func v3Scenarios() []scenario {
	var client *v3.Client
	var uuid string
	service := func() v3.Service { return client.V3 }
	return []scenario{
		{"v3: a client is made", func() (err error) {
			client, err = v3.NewV3Client(credentials())
			return err
		}},
		{"v3: lists with filters and pages", func() error { return v3Lists(service()) }},
		{"v3: a VM is made with cloud-init and powered on", func() (err error) {
			uuid, err = v3Create(service())
			return err
		}},
		{"v3: an update needs the newest spec version", func() error { return v3Update(service(), uuid) }},
		{"v3: categories come and go", func() error { return v3Categories(service()) }},
		{"v3: a VM is deleted and its task ends", func() error { return v3Delete(service(), uuid) }},
		{"v3: who asks is told", func() error {
			me, err := client.V3.GetCurrentLoggedInUser(ctx)
			if err != nil {
				return err
			}
			return must(*me.Status.Name == "admin", "it is %s", *me.Status.Name)
		}},
	}
}

func v3Lists(service v3.Service) error {
	all, err := service.ListAllCluster(ctx, "")
	if err != nil {
		return err
	}
	if err := must(len(all.Entities) == 6, "%d clusters", len(all.Entities)); err != nil {
		return err
	}
	images, err := service.ListAllImage(ctx, "name==ubuntu-22.04-kube-v1.28.0")
	if err != nil {
		return err
	}
	if err := must(len(images.Entities) == 1, "%d images of that name", len(images.Entities)); err != nil {
		return err
	}
	seen := map[string]bool{}
	for offset := int64(0); offset < 6; offset += 2 {
		page, err := service.ListSubnet(ctx, &v3.DSMetadata{Kind: ptr.To("subnet"), Length: ptr.To[int64](2), Offset: &offset})
		if err != nil {
			return err
		}
		for _, each := range page.Entities {
			seen[*each.Metadata.UUID] = true
		}
	}
	return must(len(seen) == 6, "pages overlap: %d subnets seen", len(seen))
}

func v3Create(service v3.Service) (string, error) {
	clusters, err := service.ListAllCluster(ctx, "name==nutanix-cluster-1")
	if err != nil {
		return "", err
	}
	subnets, err := service.ListAllSubnet(ctx, "name==vm-network", nil)
	if err != nil {
		return "", err
	}
	images, err := service.ListAllImage(ctx, "name==ubuntu-22.04-kube-v1.28.0")
	if err != nil {
		return "", err
	}
	data := base64.StdEncoding.EncodeToString([]byte("#cloud-config\nhostname: go-v3\n"))
	made, err := service.CreateVM(ctx, &v3.VMIntentInput{
		Metadata: &v3.Metadata{Kind: ptr.To("vm"), Categories: map[string]string{"Environment": "Dev"}},
		Spec: &v3.VM{
			Name:             ptr.To("go-v3"),
			ClusterReference: &v3.Reference{Kind: ptr.To("cluster"), UUID: clusters.Entities[0].Metadata.UUID},
			Resources: &v3.VMResources{
				NumSockets:        ptr.To[int64](2),
				NumVcpusPerSocket: ptr.To[int64](1),
				MemorySizeMib:     ptr.To[int64](4096),
				PowerState:        ptr.To("ON"),
				DiskList: []*v3.VMDisk{{
					DataSourceReference: &v3.Reference{Kind: ptr.To("image"), UUID: images.Entities[0].Metadata.UUID},
					DiskSizeMib:         ptr.To[int64](20480),
				}},
				NicList: []*v3.VMNic{{
					SubnetReference: &v3.Reference{Kind: ptr.To("subnet"), UUID: subnets.Entities[0].Metadata.UUID},
				}},
				GuestCustomization: &v3.GuestCustomization{CloudInit: &v3.GuestCustomizationCloudInit{UserData: &data}},
			},
		},
	})
	if err != nil {
		return "", err
	}
	uuid := *made.Metadata.UUID
	if err := v3Task(service, made.Status.ExecutionContext.TaskUUID.(string)); err != nil {
		return uuid, err
	}
	return uuid, awaited("an address", func() (bool, error) {
		vm, err := service.GetVM(ctx, uuid)
		if err != nil {
			return false, err
		}
		if vm.Status.State == nil || *vm.Status.State != "COMPLETE" {
			return false, nil
		}
		if *vm.Status.Resources.PowerState != "ON" {
			return false, fmt.Errorf("the power state is %s", *vm.Status.Resources.PowerState)
		}
		nics := vm.Status.Resources.NicList
		return len(nics) == 1 && len(nics[0].IPEndpointList) > 0 && *nics[0].IPEndpointList[0].IP != "", nil
	})
}

func v3Task(service v3.Service, uuid string) error {
	return awaited("the end of a task", func() (bool, error) {
		task, err := service.GetTask(ctx, uuid)
		if err != nil {
			return false, err
		}
		if *task.Status == "FAILED" {
			return false, fmt.Errorf("the task failed: %s", ptr.Deref(task.ErrorDetail, ""))
		}
		return *task.Status == "SUCCEEDED", nil
	})
}

func v3Update(service v3.Service, uuid string) error {
	vm, err := service.GetVM(ctx, uuid)
	if err != nil {
		return err
	}
	stale := *vm.Metadata.SpecVersion
	vm.Spec.Description = ptr.To("changed")
	done, err := service.UpdateVM(ctx, uuid, &v3.VMIntentInput{Metadata: vm.Metadata, Spec: vm.Spec})
	if err != nil {
		return err
	}
	if err := v3Task(service, done.Status.ExecutionContext.TaskUUID.(string)); err != nil {
		return err
	}
	after, err := service.GetVM(ctx, uuid)
	if err != nil {
		return err
	}
	if err := must(*after.Spec.Description == "changed", "the description is %q", *after.Spec.Description); err != nil {
		return err
	}
	vm.Metadata.SpecVersion = &stale
	_, err = service.UpdateVM(ctx, uuid, &v3.VMIntentInput{Metadata: vm.Metadata, Spec: vm.Spec})
	return must(err != nil && strings.Contains(err.Error(), "409"), "an old spec version was taken: %v", err)
}

func v3Categories(service v3.Service) error {
	if _, err := service.CreateOrUpdateCategoryKey(ctx, &v3.CategoryKey{Name: ptr.To("go-key")}); err != nil {
		return err
	}
	if _, err := service.CreateOrUpdateCategoryValue(ctx, "go-key", &v3.CategoryValue{Value: ptr.To("one")}); err != nil {
		return err
	}
	found, err := service.GetCategoryValue(ctx, "go-key", "one")
	if err != nil {
		return err
	}
	if err := must(*found.Value == "one", "the value is %s", *found.Value); err != nil {
		return err
	}
	if err := service.DeleteCategoryValue(ctx, "go-key", "one"); err != nil {
		return err
	}
	if err := service.DeleteCategoryKey(ctx, "go-key"); err != nil {
		return err
	}
	_, err = service.GetCategoryKey(ctx, "go-key")
	return must(err != nil && strings.Contains(err.Error(), "404"), "the key is still there: %v", err)
}

func v3Delete(service v3.Service, uuid string) error {
	gone, err := service.DeleteVM(ctx, uuid)
	if err != nil {
		return err
	}
	if err := v3Task(service, gone.Status.ExecutionContext.TaskUUID.(string)); err != nil {
		return err
	}
	_, err = service.GetVM(ctx, uuid)
	return must(err != nil && strings.Contains(err.Error(), "ENTITY_NOT_FOUND"), "the VM is still there: %v", err)
}
