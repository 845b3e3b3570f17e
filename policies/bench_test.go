package policies

import (
	"fmt"
	"strings"
	"testing"
)

// large is a set of some size: each service in ten clusters, with ten endpoints in each.
func large(clusters, services int) []File {
	const pools, endpoints = 10, 10
	var places, served strings.Builder
	clouds := cloudKeys()
	for i := range clusters {
		fmt.Fprintf(&places, "apiVersion: %s\nkind: Region\nmetadata: {name: r%03d}\nspec: {cloud: %s}\n---\n", APIVersion, i, clouds[i%len(clouds)])
		fmt.Fprintf(&places, "apiVersion: %s\nkind: Cluster\nmetadata: {name: c%03d}\nspec: {region: r%03d}\n---\n", APIVersion, i, i)
	}
	for i := range services {
		fmt.Fprintf(&served, "apiVersion: %s\nkind: Service\nmetadata:\n  name: s%04d\nspec:\n  models: [model-%04d]\n  pools:\n", APIVersion, i, i)
		for j := range pools {
			c := (i + j) % clusters
			fmt.Fprintf(&served, "  - cluster: c%03d\n    endpoints:\n", c)
			for k := range endpoints {
				fmt.Fprintf(&served, "    - {address: 10.%d.%d.%d, port: %d}\n", c, i/200, k+1, 8000+i%200)
			}
		}
		served.WriteString("---\n")
	}
	fmt.Fprintf(&places, "apiVersion: %s\nkind: Gateway\nmetadata: {name: edge}\nspec: {listeners: [{name: http, port: 8080}]}\n", APIVersion)
	return split(places.String(), served.String())
}

// split cuts services into files under the limit.
func split(places, served string) []File {
	files := []File{{"places.yaml", []byte(places)}}
	for i := 0; len(served) > 0; i++ {
		cut := len(served)
		if cut > MaxFileBytes {
			cut = strings.LastIndex(served[:MaxFileBytes], "---\n") + 4
		}
		files = append(files, File{fmt.Sprintf("services-%02d.yaml", i), []byte(served[:cut])})
		served = served[cut:]
	}
	return files
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []struct{ clusters, services int }{{10, 100}, {100, 1000}} {
		files := large(size.clusters, size.services)
		bytes := 0
		for _, f := range files {
			bytes += len(f.Bytes)
		}
		b.Run(fmt.Sprintf("clusters=%d/services=%d", size.clusters, size.services), func(b *testing.B) {
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				if _, diagnostics := Parse(files); len(diagnostics) > 0 {
					b.Fatal(diagnostics)
				}
			}
		})
	}
}
