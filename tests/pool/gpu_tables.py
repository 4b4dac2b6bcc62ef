"""Tables of GPUs as nvidia-smi prints them. Importable by Ray's workers."""

from evalkit.pool.devices import Device, parse_table

UUIDS = {
    "a": "GPU-aaaaaaaa-0000-1111-2222-333333333333",
    "b": "GPU-bbbbbbbb-0000-1111-2222-333333333333",
    "c": "GPU-cccccccc-0000-1111-2222-333333333333",
    "d": "GPU-dddddddd-0000-1111-2222-333333333333",
}
TABLE = "\n".join(
    f"{index}, {UUIDS[name]}, 00000000:{bus}:00.0, NVIDIA H200, 143771, 143000, Disabled"
    for index, (name, bus) in enumerate(zip("abcd", ("1B", "3B", "9A", "DB"), strict=True))
)


def gpus(letters="abcd", **changes) -> tuple[Device, ...]:
    """Some of the four, by letter."""
    from dataclasses import replace

    known = dict(zip("abcd", (device for device, _ in parse_table(TABLE)), strict=True))
    return tuple(replace(known[letter], **changes) for letter in letters)
