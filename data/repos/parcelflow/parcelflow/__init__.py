"""parcelflow: quotes, bookings, routing and tracking for parcel shipments."""

__version__ = "0.7.1"
