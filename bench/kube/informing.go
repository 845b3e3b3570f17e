package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// informing reads clusters as most controllers do: a shared informer for each kind.
type informing struct {
	cancel    context.CancelFunc
	factories []informers.SharedInformerFactory
}

func (i *informing) do(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "read":
		return i.read(ctx, o)
	case "usage", "usage after collection":
		return usageOf(o)
	}
	return unknown(o)
}

// read reads until all informers have synced.
func (i *informing) read(ctx context.Context, o order) (answer, error) {
	ctx, i.cancel = context.WithCancel(ctx)
	began := time.Now()
	for c := range o.Policies.Clusters {
		client, err := connect(filepath.Join(o.Folder, clusterName(c)))
		if err != nil {
			return answer{}, err
		}
		f := informers.NewSharedInformerFactory(client, 0)
		f.Core().V1().Nodes().Informer()
		f.Core().V1().Pods().Informer()
		f.Core().V1().Services().Informer()
		f.Discovery().V1().EndpointSlices().Informer()
		f.Start(ctx.Done())
		i.factories = append(i.factories, f)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, f := range i.factories {
		for _, synced := range f.WaitForCacheSync(limited.Done()) {
			if !synced {
				return answer{}, errors.New("the informers have not synced")
			}
		}
	}
	return answer{Began: began.UnixNano(), Ready: time.Now().UnixNano()}, nil
}

// connect asks for protobuf, as kube does.
func connect(kubeconfig string) (kubernetes.Interface, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	c.QPS = -1
	c.AcceptContentTypes, c.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(c)
}

func (i *informing) end() error {
	if i.cancel != nil {
		i.cancel()
	}
	for _, f := range i.factories {
		f.Shutdown()
	}
	return nil
}
