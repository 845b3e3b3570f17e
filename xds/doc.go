// Package xds is the vocabulary of finished configuration: a Resource is one serialised xDS resource with its content
// hash, a Snapshot is everything that the proxies of one viewpoint hold. Names says what resources are called, so that
// those who build, check, serve and read reports agree.
//
// xds/build makes snapshots, xds/verify checks them, xds/cache keeps and xds/serve sends them. Everything here is
// immutable once made and safe for any number of readers.
package xds
