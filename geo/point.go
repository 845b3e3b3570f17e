package geo

import (
	"fmt"
	"math"
	"time"
)

// Point is a place on the globe. The zero Point is invalid and prints as "nowhere", so that a place that was never set
// cannot pass for 0°, 0°.
type Point struct {
	// latitude is in degrees, shifted by +91 so that 0 means unset; longitude is in degrees.
	latitude, longitude float64
}

const latitudeShift = 91

// MakePoint makes a point from degrees: latitude -90 to 90, longitude -180 to 180.
func MakePoint(latitude, longitude float64) (Point, error) {
	if !(latitude >= -90 && latitude <= 90) {
		return Point{}, fmt.Errorf("latitude %v is outside -90 to 90 degrees", latitude)
	}
	if !(longitude >= -180 && longitude <= 180) {
		return Point{}, fmt.Errorf("longitude %v is outside -180 to 180 degrees", longitude)
	}
	return Point{latitude + latitudeShift, longitude}, nil
}

// Valid says whether the point was made by MakePoint.
func (p Point) Valid() bool { return p.latitude != 0 }

// Latitude is in degrees, north positive.
func (p Point) Latitude() float64 { return p.latitude - latitudeShift }

// Longitude is in degrees, east positive.
func (p Point) Longitude() float64 { return p.longitude }

// String is "latitude,longitude" with two decimals, or "nowhere".
func (p Point) String() string {
	if !p.Valid() {
		return "nowhere"
	}
	return fmt.Sprintf("%.2f,%.2f", p.Latitude(), p.Longitude())
}

// Kilometres is a distance along the globe's surface.
type Kilometres float64

// earthRadius is the mean radius R1 of the GRS 80 ellipsoid.
const earthRadius Kilometres = 6371.0088

// Distance is the great-circle distance by the haversine formula; it is within 0.5 % of the ellipsoid's.
func Distance(a, b Point) (Kilometres, error) {
	if !a.Valid() || !b.Valid() {
		return 0, fmt.Errorf("distance from %v to %v: a point is not set", a, b)
	}
	const radians = math.Pi / 180
	sinLat := math.Sin((b.Latitude() - a.Latitude()) * radians / 2)
	sinLon := math.Sin((b.Longitude() - a.Longitude()) * radians / 2)
	h := sinLat*sinLat + math.Cos(a.Latitude()*radians)*math.Cos(b.Latitude()*radians)*sinLon*sinLon
	return 2 * earthRadius * Kilometres(math.Asin(math.Min(1, math.Sqrt(h)))), nil
}

const (
	// fibreSpeed is light in fibre, at a refractive index of about 1.47: kilometres a millisecond.
	fibreSpeed = 204
	// pathStretch is how much longer real paths are than the great circle. Singla et al., "The Internet at the
	// Speed of Light" (HotNets 2014), find a median near 1.5 for paths between data centres.
	pathStretch = 1.5
	// baseRTT is for the equipment at both ends.
	baseRTT = time.Millisecond
)

// EstimateRTT is a round trip over a great-circle distance, for where none was measured.
func EstimateRTT(d Kilometres) time.Duration {
	milliseconds := 2 * float64(d) * pathStretch / fibreSpeed
	return baseRTT + time.Duration(milliseconds*float64(time.Millisecond)).Round(10*time.Microsecond)
}
