package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/nutanix-cloud-native/prism-go-client/converged"
	convergedv4 "github.com/nutanix-cloud-native/prism-go-client/converged/v4"
	v4 "github.com/nutanix-cloud-native/prism-go-client/v4"
	prism "github.com/nutanix/ntnx-api-golang-clients/prism-go-client/v4/models/prism/v4/config"
	vmm "github.com/nutanix/ntnx-api-golang-clients/vmm-go-client/v4/models/vmm/v4/ahv/config"
	"k8s.io/utils/ptr"
)

func v4Scenarios() []scenario {
	var client *convergedv4.Client
	var plain *v4.Client
	var uuid string
	return []scenario{
		{"v4: clients are made", func() (err error) {
			if plain, err = v4.NewV4Client(credentials()); err != nil {
				return err
			}
			client, err = convergedv4.NewClient(credentials())
			return err
		}},
		{"v4: lists with filters and pages", func() error { return v4Lists(client) }},
		{"v4: a VM is made with cloud-init", func() (err error) {
			uuid, err = v4Create(client)
			return err
		}},
		{"v4: power goes on and off", func() error { return v4Power(client, uuid) }},
		{"v4: an update needs the newest ETag", func() error { return v4Update(client, plain, uuid) }},
		{"v4: categories come and go", func() error { return v4Categories(client) }},
		{"v4: tasks are found by entity", func() error { return v4Tasks(client, uuid) }},
		{"v4: what does not exist is not found", func() error {
			_, err := client.VMs.Get(ctx, "00000000-0000-4000-8000-000000000000")
			return must(errors.Is(err, converged.ErrNotFound) || kindOf(err) == converged.ErrNotFound, "it is told as %v", err)
		}},
		{"v4: a VM is deleted", func() error {
			if err := client.VMs.Delete(ctx, uuid); err != nil {
				return err
			}
			_, err := client.VMs.Get(ctx, uuid)
			return must(err != nil, "the VM is still there")
		}},
	}
}

func kindOf(err error) error {
	var api *converged.APIError
	if errors.As(err, &api) {
		return api.Kind
	}
	return nil
}

func v4Lists(client *convergedv4.Client) error {
	clusters, err := client.Clusters.List(ctx)
	if err != nil {
		return err
	}
	if err := must(len(clusters) == 6, "%d clusters", len(clusters)); err != nil {
		return err
	}
	images, err := client.Images.List(ctx, converged.WithFilter("startswith(name, 'ubuntu') and type eq Vmm.Content.ImageType'DISK_IMAGE'"))
	if err != nil {
		return err
	}
	if err := must(len(images) == 5, "%d images", len(images)); err != nil {
		return err
	}
	seen := map[string]bool{}
	for page := 0; page < 3; page++ {
		got, err := client.Clusters.List(ctx, converged.WithPage(page), converged.WithLimit(2))
		if err != nil {
			return err
		}
		for _, each := range got {
			seen[*each.ExtId] = true
		}
	}
	return must(len(seen) == 6, "pages overlap: %d clusters seen", len(seen))
}

func v4Create(client *convergedv4.Client) (string, error) {
	clusters, err := client.Clusters.List(ctx, converged.WithFilter("name eq 'nutanix-cluster-1'"))
	if err != nil {
		return "", err
	}
	subnets, err := client.Subnets.List(ctx, converged.WithFilter("name eq 'vm-network'"))
	if err != nil {
		return "", err
	}
	images, err := client.Images.List(ctx, converged.WithFilter("name eq 'ubuntu-22.04-kube-v1.28.0'"))
	if err != nil {
		return "", err
	}
	reference := vmm.NewImageReference()
	reference.ImageExtId = images[0].ExtId
	source := vmm.NewDataSource()
	if err := source.SetReference(*reference); err != nil {
		return "", err
	}
	backing := vmm.NewVmDisk()
	backing.DiskSizeBytes = ptr.To[int64](40 << 30)
	backing.DataSource = source
	disk := vmm.NewDisk()
	if err := disk.SetBackingInfo(*backing); err != nil {
		return "", err
	}
	network := vmm.NewVirtualEthernetNicNetworkInfo()
	network.Subnet = vmm.NewSubnetReference()
	network.Subnet.ExtId = subnets[0].ExtId
	nic := vmm.NewNic()
	if err := nic.SetNicNetworkInfo(*network); err != nil {
		return "", err
	}
	script := vmm.NewUserdata()
	script.Value = ptr.To(base64.StdEncoding.EncodeToString([]byte("#cloud-config\nhostname: go-v4\n")))
	cloud := vmm.NewCloudInit()
	if err := cloud.SetCloudInitScript(*script); err != nil {
		return "", err
	}
	custom := vmm.NewGuestCustomizationParams()
	if err := custom.SetConfig(*cloud); err != nil {
		return "", err
	}
	vm := vmm.NewVm()
	vm.Name = ptr.To("go-v4")
	vm.NumSockets, vm.NumCoresPerSocket = ptr.To(2), ptr.To(1)
	vm.MemorySizeBytes = ptr.To[int64](4 << 30)
	vm.Cluster = vmm.NewClusterReference()
	vm.Cluster.ExtId = clusters[0].ExtId
	vm.Disks, vm.Nics, vm.GuestCustomization = []vmm.Disk{*disk}, []vmm.Nic{*nic}, custom
	made, err := client.VMs.Create(ctx, vm)
	if err != nil {
		return "", err
	}
	return *made.ExtId, must(*made.Name == "go-v4", "its name is %s", *made.Name)
}

func v4Power(client *convergedv4.Client, uuid string) error {
	on, err := client.VMs.PowerOnVM(uuid)
	if err != nil {
		return err
	}
	if _, err := on.Wait(ctx); err != nil {
		return err
	}
	err = awaited("an address", func() (bool, error) {
		vm, err := client.VMs.Get(ctx, uuid)
		if err != nil {
			return false, err
		}
		if vm.PowerState.GetName() != "ON" {
			return false, fmt.Errorf("the power state is %s", vm.PowerState.GetName())
		}
		info, ok := vm.Nics[0].GetNicNetworkInfo().(vmm.VirtualEthernetNicNetworkInfo)
		return ok && info.Ipv4Info != nil && len(info.Ipv4Info.LearnedIpAddresses) > 0, nil
	})
	if err != nil {
		return err
	}
	off, err := client.VMs.PowerOffVM(uuid)
	if err != nil {
		return err
	}
	_, err = off.Wait(ctx)
	return err
}

func v4Update(client *convergedv4.Client, plain *v4.Client, uuid string) error {
	first, err := plain.VmApiInstance.GetVmById(&uuid)
	if err != nil {
		return err
	}
	vm, ok := first.GetData().(vmm.Vm)
	if !ok {
		return fmt.Errorf("a VM is read as %T", first.GetData())
	}
	args := map[string]any{"If-Match": ptr.To(convergedv4.GetEtag(vm))}
	vm.Description = ptr.To("changed")
	after, err := client.VMs.Update(ctx, uuid, &vm)
	if err != nil {
		return err
	}
	if err := must(*after.Description == "changed", "the description is %q", *after.Description); err != nil {
		return err
	}
	_, err = plain.VmApiInstance.UpdateVmById(&uuid, &vm, args)
	return must(err != nil && strings.Contains(err.Error(), "VMM-30303"), "an old ETag was taken: %v", err)
}

func v4Categories(client *convergedv4.Client) error {
	category := prism.NewCategory()
	category.Key, category.Value = ptr.To("go"), ptr.To("one")
	made, err := client.Categories.Create(ctx, category)
	if err != nil {
		return err
	}
	found, err := client.Categories.List(ctx, converged.WithFilter("key eq 'go' and value eq 'one'"))
	if err != nil {
		return err
	}
	if err := must(len(found) == 1, "%d categories", len(found)); err != nil {
		return err
	}
	if err := client.Categories.Delete(ctx, *made.ExtId); err != nil {
		return err
	}
	found, err = client.Categories.List(ctx, converged.WithFilter("key eq 'go'"))
	if err != nil {
		return err
	}
	return must(len(found) == 0, "the category is still there")
}

func v4Tasks(client *convergedv4.Client, uuid string) error {
	filter := fmt.Sprintf("entitiesAffected/any(a:a/extId eq '%s')", uuid)
	tasks, err := client.Tasks.List(ctx, converged.WithFilter(filter))
	if err != nil {
		return err
	}
	operations := map[string]bool{}
	for _, task := range tasks {
		operations[ptr.Deref(task.Operation, "")] = true
		if task.Status.GetName() != "SUCCEEDED" {
			return fmt.Errorf("%s is %s", *task.Operation, task.Status.GetName())
		}
	}
	return must(operations["kVmCreate"] && operations["kVmPowerOn"], "the operations are %v", operations)
}
