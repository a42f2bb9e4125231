"""Validators collect every problem before raising."""
from typing import Any, Dict, List, Tuple

from parcelflow.carriers import carriers
from parcelflow.exceptions import ValidationError
from parcelflow.models.shipment import SERVICE_LEVELS, ShipmentStatus
from parcelflow.utils.ids import is_tracking_number
from parcelflow.utils.text import is_email, is_phone, is_postcode


class Validator:
    """Checks required fields, then calls :meth:`check` for the rest."""
    required: Tuple[str, ...] = ()

    def validate(self, data: Dict[str, Any]) -> Dict[str, Any]:
        errors = self.errors_for(data)
        if errors:
            raise ValidationError(errors)
        return data

    def errors_for(self, data: Any) -> Dict[str, List[str]]:
        if not isinstance(data, dict):
            return {"": ["must be an object"]}
        errors = {name: ["is required"] for name in self.required if not data.get(name)}
        if not errors:
            self.check(data, errors)
        return errors

    def check(self, data: Dict[str, Any], errors: Dict[str, List[str]]) -> None:
        """Add messages to ``errors``; required fields are known to be present."""

    def nested(self, prefix: str, data: Any, errors: Dict[str, List[str]]) -> None:
        """Run this validator on a part of the input."""
        for name, messages in self.errors_for(data).items():
            errors[(prefix + "." + name).rstrip(".")] = messages


class AddressValidator(Validator):
    required = ("name", "street", "city", "postcode", "country")

    def check(self, data: Dict[str, Any], errors: Dict[str, List[str]]) -> None:
        if not is_postcode(data["country"], data["postcode"]):
            errors["postcode"] = ["not valid for " + data["country"]]
        if data.get("email") and not is_email(data["email"]):
            errors["email"] = ["not an e-mail address"]
        if data.get("phone") and not is_phone(data["phone"]):
            errors["phone"] = ["not an international phone number"]


class ParcelValidator(Validator):
    required = ("weight_kg", "size_cm")

    def check(self, data: Dict[str, Any], errors: Dict[str, List[str]]) -> None:
        if not isinstance(data["weight_kg"], (int, float)) or data["weight_kg"] <= 0:
            errors["weight_kg"] = ["must be a positive number"]
        size = data["size_cm"]
        if not isinstance(size, list) or len(size) != 3:
            errors["size_cm"] = ["must list length, width and height"]
        elif not all(isinstance(side, int) and side > 0 for side in size):
            errors["size_cm"] = ["sides must be positive integers"]


class ShipmentValidator(Validator):
    required = ("sender", "recipient", "parcels")

    def check(self, data: Dict[str, Any], errors: Dict[str, List[str]]) -> None:
        AddressValidator().nested("sender", data["sender"], errors)
        AddressValidator().nested("recipient", data["recipient"], errors)
        for index, parcel in enumerate(data["parcels"]):
            ParcelValidator().nested("parcels.{}".format(index), parcel, errors)
        if data.get("service_level", "standard") not in SERVICE_LEVELS:
            errors["service_level"] = ["must be one of " + ", ".join(SERVICE_LEVELS)]
        if data.get("carrier", "postal") not in carriers.names():
            errors["carrier"] = ["unknown carrier"]


class ScanValidator(Validator):
    required = ("tracking_number", "status")

    def check(self, data: Dict[str, Any], errors: Dict[str, List[str]]) -> None:
        if not is_tracking_number(data["tracking_number"]):
            errors["tracking_number"] = ["check digit does not match"]
        if data["status"] not in [status.value for status in ShipmentStatus]:
            errors["status"] = ["unknown status"]
