"""generateContent API of Google: Gemini on AI Studio and Vertex AI."""
