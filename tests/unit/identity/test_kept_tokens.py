"""Of more device codes than tokens are kept for, the newest can be asked for again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from equipoise.clients.provider import Description
from equipoise_server.identity import device_codes
from equipoise_server.identity.device_codes import MAX_KEPT, DeviceCodes


def test_the_newest_codes_keep_their_tokens_and_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[str] = []

    def fetched(_: str, form: Mapping[str, str]) -> dict[str, str]:
        posted.append(form["device_code"])
        return {"id_token": f"token {len(posted)} for {posted[-1]}"}

    monkeypatch.setattr(device_codes, "description", lambda issuer: Description("", f"{issuer}/token", "", ""))
    monkeypatch.setattr(device_codes, "fetched", fetched)
    codes = DeviceCodes("https://login.example", "equipoise")
    names = [f"code-{number}" for number in range(MAX_KEPT + 1)]
    tokens = [codes.token(name) for name in names]
    assert posted == names
    # The provider would not exchange these a second time.
    assert [codes.token(name) for name in names[:0:-1]] == tokens[:0:-1]
    assert posted == names
    codes.token(names[0])
    assert posted == [*names, names[0]]
