"""Categories in v3: keys, and values of keys."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import replace
from homeport.sim.prism.entity import Category
from homeport.sim.prism.error import Refusal, conflict
from homeport.sim.prism.rule import refuse_used
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.v3 import envelope
from homeport.sim.prism.v3.envelope import BASE, DEFAULT_LENGTH, VERSION, Json


def add_routes(routes: Routes) -> None:
    key, value = f"{BASE}/categories/{{name}}", f"{BASE}/categories/{{name}}/{{value}}"
    routes.add("POST", f"{BASE}/categories/list", list_keys, reads=True)
    routes.add("POST", f"{BASE}/categories/{{name}}/list", list_values, reads=True)
    routes.add("POST", f"{BASE}/category/query", query, reads=True)
    routes.add("GET", key, get_key)
    routes.add("PUT", key, put_key)
    routes.add("DELETE", key, delete_key)
    routes.add("GET", value, get_value)
    routes.add("PUT", value, put_value)
    routes.add("DELETE", value, delete_value)


def _of_key(site: Site, name: str) -> list[Category]:
    found = [category for category in site.world.categories if category.key == name]
    if not found:
        raise Refusal(404, f"The category {name} does not exist.", "", "", "ENTITY_NOT_FOUND")
    return found


def _value(site: Site, name: str, value: str) -> Category:
    for category in site.world.categories:
        if (category.key, category.value) == (name, value):
            return category
    raise Refusal(404, f"The category {name}:{value} does not exist.", "", "", "ENTITY_NOT_FOUND")


def _key_view(name: str, categories: Sequence[Category]) -> Json:
    own = next((each for each in categories if not each.value), None)
    return {
        "api_version": VERSION,
        "name": name,
        "description": own.description if own else "",
        "capabilities": {"cardinality": 64},
        "system_defined": any(each.type != "USER" for each in categories),
    }


def _value_view(category: Category) -> Json:
    return {
        "api_version": VERSION,
        "name": category.key,
        "value": category.value,
        "description": category.description,
        "system_defined": category.type != "USER",
    }


def _page(call: Call, items: list[Json]) -> Answer:
    body = Body(call.body if call.body is not None else {})
    offset, length = max(0, body.integer("offset", 0)), max(1, body.integer("length", DEFAULT_LENGTH))
    page = items[offset : offset + length]
    meta = {"kind": "category", "offset": offset, "length": len(page), "total_matches": len(items)}
    return Answer(200, {"api_version": VERSION, "metadata": meta, "entities": page})


def list_keys(site: Site, call: Call) -> Answer:
    keys: dict[str, list[Category]] = {}
    for category in site.world.categories:
        keys.setdefault(category.key, []).append(category)
    return _page(call, [_key_view(name, found) for name, found in keys.items()])


def list_values(site: Site, call: Call) -> Answer:
    return _page(call, [_value_view(each) for each in _of_key(site, call.params["name"]) if each.value])


def get_key(site: Site, call: Call) -> Answer:
    name = call.params["name"]
    return Answer(200, _key_view(name, _of_key(site, name)))


def put_key(site: Site, call: Call) -> Answer:
    name = call.params["name"]
    description = Body(call.body or {}).text("description")
    found = [category for category in site.world.categories if category.key == name]
    own = next((category for category in found if not category.value), None)
    if own is None:
        own = Category(ext_id=site.core.new_id(), key=name, description=description)
    own = site.core.put(site.core.world.categories, replace(own, description=description))
    return Answer(200, _key_view(name, [*found, own]))


def delete_key(site: Site, call: Call) -> Answer:
    found = _of_key(site, call.params["name"])
    if any(category.value for category in found):
        raise conflict(f"The category {call.params['name']} has values.", group="CATEGORY_IN_USE")
    for category in found:
        site.core.drop(site.core.world.categories, category.ext_id)
    return Answer(200, {})


def get_value(site: Site, call: Call) -> Answer:
    return Answer(200, _value_view(_value(site, call.params["name"], call.params["value"])))


def put_value(site: Site, call: Call) -> Answer:
    name, value = call.params["name"], call.params["value"]
    _of_key(site, name)
    description = Body(call.body or {}).text("description")
    known = [each for each in site.world.categories if (each.key, each.value) == (name, value)]
    category = known[0] if known else Category(ext_id=site.core.new_id(), key=name, value=value)
    category = site.core.put(site.core.world.categories, replace(category, description=description))
    return Answer(200, _value_view(category))


def delete_value(site: Site, call: Call) -> Answer:
    category = _value(site, call.params["name"], call.params["value"])
    refuse_used(site, category)
    site.core.drop(site.core.world.categories, category.ext_id)
    return Answer(200, {})


def query(site: Site, call: Call) -> Answer:
    """VMs by category: `params` maps keys to values."""
    body = Body(call.body)
    wanted = body.object("category_filter")
    params = wanted.mapping("params") if wanted is not None else {}
    found = []
    for vm in site.world.vms:
        held: dict[str, set[str]] = {}
        for ext_id in vm.categories:
            category = site.world.categories.get(ext_id)
            if category is not None:
                held.setdefault(category.key, set()).add(category.value)
        if all(held.get(key, set()) & set(values) for key, values in params.items()):
            found.append(envelope.reference("vm", vm.ext_id, vm.name))
    results = [{"kind": "vm", "total_entity_count": len(found), "kind_reference_list": found}] if found else []
    return Answer(200, {"api_version": VERSION, "metadata": {"kind": "category"}, "results": results})
