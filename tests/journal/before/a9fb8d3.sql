BEGIN TRANSACTION;
CREATE TABLE events (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',1,1.7953671035771391392e+09,'session_started','{"type": "session_started", "v": 1, "session": "50a55c31e2075ec4b5860d32ac8ec2de", "model": "scripted:", "dialect": "intents", "plugins": ["pay"], "workspace": "/home/user/w", "resumed": false, "origins": []}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',2,1.79536710357721662517e+09,'message','{"type": "message", "v": 1, "sender": "user", "receiver": "model", "content": "Pay 5"}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',3,1.7953671035784080029e+09,'model_started','{"type": "model_started", "v": 1, "turn": 1, "model": "scripted:"}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',4,1.79536710357852816576e+09,'model_finished','{"type": "model_finished", "v": 1, "text": "[{\"tool\": \"pay\", \"amount\": 5}]", "finish_reason": "stop", "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "seconds": 7.472099969163537e-05, "tool_calls": [], "notes": [], "carried": ""}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',5,1.79536710360165023808e+09,'plan_checked','{"type": "plan_checked", "v": 1, "steps": [{"id": "a1", "tool": "pay", "arguments": {"amount": 5}, "name": null, "depends": []}], "problems": [], "notes": ["no markers"]}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',6,1.79536710360175538062e+09,'call_started','{"type": "call_started", "v": 1, "id": "a1", "plugin": "pay", "command": "pay", "tool": "pay", "arguments": {"amount": 5}, "effects": "once", "shown": null, "origins": [], "part_of": ""}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',7,1.79536710362088036533e+09,'call_finished','{"type": "call_finished", "v": 1, "id": "a1", "plugin": "pay", "command": "pay", "tool": "pay", "status": "done", "value": "paid 5", "asset": null, "error": null, "warnings": [], "seconds": 0.018822281999746338, "wrote": [], "part_of": ""}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',8,1.79536710362101221082e+09,'message','{"type": "message", "v": 1, "sender": "system", "receiver": "model", "content": "<!-- RESULTS_START -->\n{\"results\":[{\"step\":1,\"tool\":\"pay\",\"id\":\"a1\",\"status\":\"done\",\"response\":\"paid 5\"}]}\n<!-- RESULTS_END -->"}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',9,1.79536710362109637253e+09,'model_started','{"type": "model_started", "v": 1, "turn": 2, "model": "scripted:"}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',10,1.7953671036212377548e+09,'model_finished','{"type": "model_finished", "v": 1, "text": "Paid.", "finish_reason": "stop", "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "seconds": 0.00010083999950438738, "tool_calls": [], "notes": [], "carried": ""}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',11,1.79536710362129259114e+09,'message','{"type": "message", "v": 1, "sender": "model", "receiver": "user", "content": "Paid."}');
INSERT INTO "events" VALUES('50a55c31e2075ec4b5860d32ac8ec2de',12,1.79536710362140321728e+09,'session_finished','{"type": "session_finished", "v": 1, "outcome": "answered", "text": "Paid.", "error": "", "seconds": 0.044208063000041875, "files": []}');
COMMIT;
PRAGMA application_id=1314411073;
PRAGMA user_version=1;
