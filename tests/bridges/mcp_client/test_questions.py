"""A server's questions: sampling and forms, put to the person."""

import json

from bridges.mcp_client.servers import hostile, opened, say
from neuraxis import Policy, Rule
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel


async def test_sampling_in_a_loop_is_refused(tmp_path):
    """Nobody gave a model: each request is refused, and the model is told how many."""
    asked = []
    with opened(tmp_path, hostile("asks"), approve=asked.append) as session:
        result = await say(session)
    assert json.loads(result.value)["refused"] == 20
    assert asked == []


async def test_sampling_with_a_model_asks_the_person_each_time(tmp_path):
    """The model is asked after a yes only, and at most five times in one call."""
    asked = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return len(asked) == 1

    model = ScriptedModel(["a text"])
    source = hostile("asks", sampling=model)
    with opened(tmp_path, source, approve=approve) as session:
        result = await say(session)
    said = json.loads(result.value)
    assert (said["refused"], said["last"]["content"]["text"]) == (19, "a text")
    assert len(model.prompts) == 1
    assert len(asked) <= 5
    assert asked[0].call["command"] == "sampling"
    assert "20 questions; 19 were refused" in result.warnings[0]


async def test_a_form_is_put_to_the_person_and_a_yes_fills_in_its_defaults(tmp_path):
    """Elicitation: the question shows the server's words without escape codes."""
    asked = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return True

    with opened(tmp_path, hostile("elicits"), approve=approve) as session:
        result = await say(session)
    said = json.loads(result.value)
    assert said["last"] == {"action": "accept", "content": {"name": "Ada"}}
    assert said["refused"] == 15  # five questions in one call, and no more
    assert "\x1b" not in asked[0].call["arguments"]["message"]


async def test_a_rule_may_deny_a_servers_questions(tmp_path):
    """It was refused as a rule that matches no command; nobody is asked."""
    asked = []
    policy = Policy(
        rules=[
            Rule(verdict="allow", target="hostile.say"),
            Rule(verdict="deny", target="hostile.form", arguments={"message": "*"}),
        ]
    )
    source = hostile("elicits")
    with opened(tmp_path, source, policy=policy, approve=asked.append) as session:
        result = await say(session)
    assert json.loads(result.value)["refused"] == 20
    assert asked == []


async def test_without_anybody_to_ask_a_form_is_declined(tmp_path):
    """Elicitation is refused where nobody can be asked."""
    with opened(tmp_path, hostile("elicits")) as session:
        result = await say(session)
    assert json.loads(result.value)["refused"] == 20


async def test_a_program_may_answer_forms_itself(tmp_path):
    """`answer=` fills the form; what does not fit its schema is not sent."""
    given = iter([{"name": "Bob"}, {"name": 5}, None])
    source = hostile("elicits", answer=lambda question: next(given, None))
    with opened(tmp_path, source) as session:
        result = await say(session)
    said = json.loads(result.value)
    assert said["last"]["action"] == "cancel"
    assert said["refused"] == 18
