"""A small API that has a parameter in every place, and every kind of body."""

from typing import Any

PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pet Store API", "description": "Pets and their owners."},
    "servers": [{"url": "https://pets.example.org/v1"}],
    "components": {
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "basic": {"type": "http", "scheme": "basic"},
        },
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "name": {"type": "string", "nullable": True},
                    "mother": {"$ref": "#/components/schemas/Pet"},
                },
            }
        },
    },
    "security": [{"key": []}],
    "paths": {
        "/pets": {
            "get": {
                "operationId": "pets/list",
                "summary": "List the pets",
                "parameters": [
                    {"name": "cursor", "in": "query", "schema": {"type": "string"}},
                    {"name": "X-Key", "in": "header", "schema": {"type": "string"}},
                    {
                        "name": "filter",
                        "in": "query",
                        "style": "deepObject",
                        "schema": {
                            "type": "object",
                            "properties": {"kind": {"type": "string"}},
                        },
                    },
                ],
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "properties": {
                                        "pets": {
                                            "type": "array",
                                            "items": {
                                                "$ref": "#/components/schemas/Pet"
                                            },
                                        },
                                        "next_cursor": {"type": "string"},
                                    },
                                }
                            }
                        }
                    }
                },
            },
            "post": {
                "operationId": "createPet",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/Pet"}
                        }
                    },
                },
                "responses": {"201": {"description": "made"}},
            },
        },
        "/pets/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True,
                 "schema": {"type": "integer"}},
            ],
            "put": {
                "parameters": [
                    {"name": "id", "in": "query", "schema": {"type": "string"}}
                ],
                "responses": {},
            },
            "delete": {"operationId": "delete pet", "responses": {}},
        },
        "/pets/{id}/photo": {
            "post": {
                "operationId": "addPhoto",
                "parameters": [
                    {"name": "id", "in": "path", "required": True,
                     "schema": {"type": "integer"}},
                ],
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["photo"],
                                "properties": {
                                    "photo": {"type": "string", "format": "binary"},
                                    "title": {"type": "string"},
                                    "tags": {"type": "object"},
                                },
                            }
                        }
                    }
                },
                "responses": {},
            }
        },
    },
}  # fmt: skip
