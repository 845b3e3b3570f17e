// Package locate is the geo service: it answers Envoy's ext_authz check with the country of the client's address, for
// deployments that prefer it to Envoy's own geoip filter.
//
// It never refuses a request. What an unknown location means is for residency rules to say, in the route that the request
// then takes. No address is logged.
package locate
