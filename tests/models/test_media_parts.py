"""Which pictures and files a model is sent, and what is told in their place."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from models.http_server import Server, answer, hello, serving, stream
from neuraxis.errors import ModelRefused
from neuraxis.messages import Chunk, Message, Part, Prompt
from neuraxis.models import complete
from neuraxis.models.failover import Failover
from neuraxis.models.http.settings import Options
from neuraxis.models.media_parts import PARTS_BYTES, with_shown
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.recorder import Recorder
from neuraxis.models.scripted import ScriptedModel

CAT = Part(
    media_type="image/png", data=b"cat", name="cat.png", asset="asset://a1/content"
)
DOG = replace(CAT, data=b"dog", name="dog.png", asset="asset://a2/content")
PDF = replace(CAT, media_type="application/pdf", data=b"%PDF", name="a.pdf")


def asked(*parts: Part, role: str = "user") -> Prompt:
    message = Message(role="user", content="What is it?", parts=parts)
    return Prompt(messages=(replace(message, role=role),))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


def model(server: Server, vision: bool | None = None) -> OpenAIModel:
    return OpenAIModel("m", server=server.url, options=Options(vision=vision))


def kinds(server: Server) -> list[list[str]]:
    """The kinds of parts in the last message of each request."""
    every: list[list[str]] = []
    for request in server.requests:
        content = request.body["messages"][-1]["content"]
        every.append([c["type"] for c in content] if isinstance(content, list) else [])
    return every


REFUSALS = [
    (500, "image input is not supported - hint: you may need to provide the mmproj"),
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "At most 0 image(s) may be provided in one request."),
    (400, "m is not a multimodal model"),
    (404, "No endpoints found that support image input"),
    (422, "messages[0]: unknown variant `image_url`, expected `text`"),
    (
        400,
        "for 'role:user' ('messages.0.content' : value must be a string)",
    ),
    (413, "Request Entity Too Large"),
]


@pytest.mark.parametrize(("status", "said"), REFUSALS)
async def test_what_a_server_refuses_is_told_in_words(
    server: Server, status: int, said: str
) -> None:
    """Once for a picture; a new one is tried again, since it may please."""
    refusal = answer({"error": {"message": said}}, status)
    server.answers(refusal, stream(hello()), stream(hello()), refusal, stream(hello()))
    blind, notes = model(server), list[str]()

    def note(chunk: Chunk) -> None:
        notes.append(chunk.note)

    for parts in ((CAT,), (CAT,), (CAT, DOG)):
        await complete(blind, asked(*parts), note)
    await blind.close()
    picture = ["text", "image_url"]
    assert kinds(server) == [picture, [], [], picture, []]
    told = server.requests[1].body["messages"][-1]["content"]
    assert "Not shown here: cat.png, image/png." in told
    assert "asset://a1/content" in told
    assert len([text for text in notes if "without pictures" in text]) == 2


async def test_a_refused_pdf_file_takes_no_picture_with_it(server: Server) -> None:
    """The picture is sent again, the file is told."""
    refusal = answer({"error": {"message": "file parts are not supported"}}, 400)
    server.answers(refusal, stream(hello()))
    blind = model(server)
    await complete(blind, asked(CAT, PDF))
    await blind.close()
    assert kinds(server) == [["text", "image_url", "file"], ["text", "image_url"]]


async def test_the_setting_decides_beforehand(server: Server) -> None:
    """`false` sends none, and `true` takes a refusal for what it is."""
    server.answers(stream(hello()))
    blind = model(server, vision=False)
    await complete(blind, asked(CAT))
    await blind.close()
    assert kinds(server) == [[]]
    server.answers(answer({"error": {"message": "the image is broken"}}, 400))
    sure = model(server, vision=True)
    with pytest.raises(ModelRefused, match="the image is broken"):
        await complete(sure, asked(CAT))
    await sure.close()
    assert all("image_url" in sent for sent in kinds(server))


async def test_another_refusal_is_no_word_about_pictures(server: Server) -> None:
    """A wrong key is told at once."""
    server.answers(answer({"error": {"message": "no image model for this key"}}, 401))
    keyed = model(server)
    with pytest.raises(ModelRefused, match="401"):
        await complete(keyed, asked(CAT))
    await keyed.close()
    assert len(server.requests) == 1


async def test_a_model_that_does_not_say_that_it_sees_is_told() -> None:
    """Also behind failover and a recorder; one that sees gets the parts."""
    blind, seeing = ScriptedModel(["x"] * 3), ScriptedModel(["x"] * 2, sees=True)
    await complete(blind, asked(CAT))
    await complete(Failover([blind]), asked(CAT))
    assert all("Not shown here" in p.messages[0].content for p in blind.prompts)
    assert not any(p.messages[0].parts for p in blind.prompts)
    await complete(seeing, asked(CAT))
    await complete(Failover([seeing]), asked(CAT))
    assert [p.messages[0].parts for p in seeing.prompts] == [(CAT,), (CAT,)]


async def test_a_recorder_sees_what_its_model_sees(tmp_path: object) -> None:
    """It hands the prompt on as it is."""
    seeing = ScriptedModel(["x"], sees=True)
    await complete(Recorder(seeing, f"{tmp_path}/r.yaml"), asked(CAT))
    assert seeing.prompts[0].messages[0].parts == (CAT,)


def test_what_is_shown_is_named_with_its_reference() -> None:
    """So that the model can give it to a command; words stand where no data is."""
    lost = replace(DOG, data=b"", about="its object is lost")
    (message,) = with_shown(asked(CAT, lost), lambda part: True).messages
    assert message.parts == (CAT,)
    assert "(Shown here: asset://a1/content.)" in message.content
    assert "its object is lost" in message.content


def test_the_pictures_of_a_tool_message_follow_it() -> None:
    """Servers take these as text only."""
    told = with_shown(asked(CAT, role="tool"), lambda part: True).messages
    assert [(item.role, item.parts) for item in told] == [
        ("tool", ()),
        ("user", (CAT,)),
    ]


def test_the_newest_pictures_have_the_room() -> None:
    """A request stays within what servers take; the oldest are told."""
    large = [replace(CAT, data=bytes([n]) * (PARTS_BYTES // 2)) for n in range(3)]
    prompt = Prompt(messages=tuple(asked(part).messages[0] for part in large))
    told = with_shown(prompt, lambda part: True).messages
    assert [len(item.parts) for item in told] == [0, 1, 1]
    assert json.dumps(told[0].content).count("Not shown here") == 1
