"""What the examples call of OpenAI's client, which the tests cannot install."""

import json
import os
import urllib.request


class Completion:
    def __init__(self, answer):
        self.answer = answer

    def model_dump(self):
        return self.answer


class Completions:
    def create(self, **kwargs):
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        request = urllib.request.Request(url, json.dumps(kwargs).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Completion(json.load(answer))


class Chat:
    completions = Completions()


class OpenAI:
    chat = Chat()
