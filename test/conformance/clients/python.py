"""What a generated client makes of the service: `python.py URL TOKEN ID…` prints each answer as it was decoded."""

import json
import sys

from plantstore_client import AuthenticatedClient
from plantstore_client.api.plants import create_plant, delete_plant, list_plants
from plantstore_client.models import Error, NewPlant

url, token, *ids = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)


def said(response):
    """An answer as it was decoded: an error by its class, whatever its status."""
    parsed = response.parsed
    answer = {"status": int(response.status_code)}
    if isinstance(parsed, Error):
        answer["error"] = parsed.to_dict()
    elif isinstance(parsed, list):
        answer["data"] = [plant.to_dict() for plant in parsed]
    elif parsed is not None:
        answer["data"] = parsed.to_dict()
    if "link" in response.headers:
        answer["link"] = response.headers["link"]
    return answer


def create(id):
    plant = NewPlant(id=int(id), name=f"Plant {id}", tag="evergreen")
    return said(create_plant.sync_detailed(client=client, body=plant))


def delete(id):
    return said(delete_plant.sync_detailed(id=int(id), client=client))


def list_as(client, **asked):
    return said(list_plants.sync_detailed(client=client, **asked))


print(
    json.dumps(
        {
            "created": [create(id) for id in ids],
            "again": create(ids[0]),
            "listed": list_as(client),
            "page": list_as(client, limit=1, after=int(ids[0])),
            "refused": list_as(client, limit=-1),
            "deleted": delete(ids[0]),
            "deletedAgain": delete(ids[0]),
            "stranger": list_as(AuthenticatedClient(base_url=url, token="nobody")),
            "elsewhere": list_as(AuthenticatedClient(base_url=f"{url}/elsewhere", token=token)),
        }
    )
)
