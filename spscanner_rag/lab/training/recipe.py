"""The numbers of a training run."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

STAGES = ("evidence", "language-model", "reranker")
SCHEDULES = ("cosine", "constant")
OPTIMIZERS = ("adamw", "muon")
RERANK_UNITS = ("sentence", "chunk", "passage", "document")
LEAST_PSEUDO_CHARACTERS = 1000

PositiveWeight = float | Literal["balanced"]

_AT_LEAST_ONE = (
    "steps sequences_per_step tokens_per_pass save_every validate_every validation_questions "
    "final_validation_questions validation_tokens source_cap group_tokens rerank_negatives"
).split()
_AT_LEAST_ZERO = (
    "teacher_weight teacher_documents distillation_weight ranking_weight pseudo_headings pseudo_phrases "
    "pseudo_masked pseudo_linked pseudo_negatives pseudo_weight calibration_questions lexical_least_units "
    "lexical_text_weight group_hard rerank_random warmup_steps snapshot_every"
).split()
_SHARES = (
    "warmup_share cooldown_share other_words_share random_place_share hard_place_share spread_share "
    "unanswerable_share unanswerable_near_share unanswerable_entity_share group_share collection_share "
    "max_shared_share ema_decay"
).split()

MAY_CHANGE = frozenset(
    "steps cooldown_share dtype compile tokens_per_pass validate_every validation_questions "
    "final_validation_questions validation_tokens calibration_questions save_every snapshot_every".split()
)
"""Keys whose values may change when a run is resumed: its length, its arithmetic, what it reports and saves."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train; ``docs/training.md`` says which stage reads which key.

    The defaults of the optimizer, its schedule and the effective batch are the paper's, for fine-tuning a
    pre-trained base (section 4.1); those of ``steps`` and ``positive_weight`` are not.
    """

    stage: str = "evidence"
    """What is learnt: "evidence", which sentences answer a question; "language-model", the next token of text; or
    "reranker", which passage answers a question, each read alone with the question after it."""
    steps: int = 15000
    """Optimizer steps. The paper trains 15,625, and its 1.3b model 6,250."""
    sequence_tokens: tuple[int, ...] = (2048, 5120, 10240)
    """Lengths of training sequences. Each step draws one of them; one listed twice is drawn twice as often."""
    sequences_per_step: int = 64
    """The effective batch."""
    tokens_per_pass: int = 16384
    """Largest number of tokens that one pass through the model reads; a longer sequence is a pass of its own.
    Changes memory, not the result."""
    learning_rate: float = 1e-4
    final_learning_rate: float = 1e-5
    """Peak and end of the schedule."""
    schedule: str = "cosine"
    """How the rate falls: "cosine", from the warm-up on, or "constant", only in the last ``cooldown_share`` of the
    steps. A constant run can be lengthened, or ended, at any step before that."""
    cooldown_share: float = 0.2
    warmup_share: float = 0.1
    """Share of the steps with a linearly rising rate."""
    warmup_steps: int = 0
    """Their number, instead of the share; 0 for the share."""
    optimizer: str = "adamw"
    """What trains the projections of the layers: "adamw", or "muon", which needs torch 2.9. AdamW trains all other
    weights."""
    betas: tuple[float, ...] = (0.9, 0.95)
    """AdamW's betas."""
    weight_decay: float = 0.01
    """On matrices only, not on norms, biases and the decays ``A_log``."""
    gradient_clip: float = 1.0
    """Largest norm of the gradient."""
    dtype: str = "bfloat16"
    """Arithmetic of matrix products, "bfloat16", "float32" or "auto": bfloat16 where the device multiplies it
    natively. Weights and optimizer are float32."""
    compile: bool = False
    """Whether torch.compile fuses each layer on a CPU, instead of the kernels that numba compiles: for machines
    without numba, 1.5 times as fast as plain torch. It needs a C++ compiler, and about a minute at the start."""
    positive_weight: PositiveWeight = 10.0
    """Weight of a relevant sentence's binary loss; others have 1. "balanced", as in the official train.py, is
    n-/n+ of the step's batch: irrelevant sentences over relevant ones; 1 without relevant ones."""
    ranking_weight: float = 0.0
    """Weight of a softmax cross-entropy over a sequence's sentences, which is added to the binary loss."""
    teacher: str = ""
    """Embedding model of `sentence-transformers`, or ``cross-encoder:NAME``, that gives every sentence a soft
    target; empty for none."""
    teacher_weight: float = 0.3
    """Weight of the squared error of a second head that learns the teacher's scores."""
    distillation_weight: float = 0.0
    """Weight of the divergence of the scanner's own logits from the teacher's scores, both as distributions over a
    sequence's sentences."""
    distillation_temperature: float = 0.2
    """Divides the teacher's scores, which have a spread of about one, before their softmax."""
    teacher_documents: int = 0
    """Documents of each source, from its first on, that get teacher scores, which are costly; 0 for all."""
    random_place_share: float = 0.0
    """Share of sequences cut anywhere in the document instead of around a relevant sentence."""
    spread_share: float = 0.0
    """Share of sequences that are cut shorter, if necessary, so that evidence from the start or end of a document
    is elsewhere in the sequence; the others are as long as possible."""
    hard_place_share: float = 0.0
    """Share of sequences cut around the irrelevant sentence with the best BM25 score instead of around a relevant
    one. In a group: the probability that such a stretch of the question's own document is a member."""
    other_words_share: float = 0.0
    """Share of questions with evidence of which about four in ten words, but no name or number, are exchanged for
    words of like meaning; needs ``lexical_soft``, whose word vectors say which."""
    unanswerable_share: float = 0.0
    """Share of sequences whose question the document does not answer: none of their sentences is relevant."""
    unanswerable_near_share: float = 0.0
    """Share of these, where the question is another document's, that read the document which BM25 takes for
    nearest to the question, not a random one."""
    unanswerable_entity_share: float = 0.0
    """Share of the sequences without an answer whose question is the document's own with a name, year or number
    exchanged for another one of the document, cut around what answered it; only of sources without questions
    marked as not answerable, and only of questions that end with a question mark."""
    group_share: float = 0.0
    """Share of examples that are groups: one question with a stretch of its own document and stretches of other
    documents of the source, ranked together."""
    group_documents: int = 4
    """Stretches of a group. If they are short, more documents follow, until they fill ``group_documents`` times
    ``group_tokens`` tokens."""
    group_hard: int = 2
    """How many of them are of documents that BM25 takes for nearest to the question; the others are random."""
    group_tokens: int = 1024
    """Most tokens of each stretch of a group."""
    group_sources: tuple[str, ...] = ()
    """Sources that groups are drawn from; empty for all whose questions rarely have the same words as another
    document's."""
    collection_share: float = 0.0
    """Share of sequences outside groups whose lexical statistics are those of several documents of the source, not
    of the document alone."""
    rerank_unit: str = "passage"
    """What a reranker learns to rank: "passage" (a paragraph), "chunk" (300 words), "sentence" or "document"; the
    first ``sequence_tokens`` of it are read."""
    rerank_negatives: int = 15
    """Passages without the answer that are ranked together with one that has it; those that BM25 and the teacher,
    if there is one, take for the nearest to the question."""
    rerank_random: int = 0
    """Instead of so many of these, random passages of the same source: a model that can't match words yet learns
    that from easy negatives."""
    pseudo_headings: int = 3
    pseudo_phrases: int = 3
    pseudo_masked: int = 6
    pseudo_linked: int = 0
    pseudo_negatives: int = 2
    """Largest numbers of pseudo-questions of the five kinds for a document of plain text."""
    pseudo_characters: int = 30_000
    """Length of the documents that plain texts are cut into, at ends of paragraphs: at most this."""
    pseudo_weight: float = 1.0
    """Factor on the weights of all sources of plain text."""
    source_smoothing: float = 0.7
    source_cap: int = 3000
    """A source with n questions is drawn with weight ``min(1, n / cap) ** smoothing``."""
    source_weights: dict[str, float] | None = None
    """Factors on those weights by source name, for sources with noisy labels (0 leaves one out)."""
    held_out_sources: tuple[str, ...] = ()
    """Sources without a validation file: the tenth of their documents whose ``int(sha1(doc_id), 16)`` is a
    multiple of 10 is validated on, not trained on."""
    max_shared_share: float = 0.01
    """Documents that share more than this with documents to validate on are not trained on; see
    `spscanner_rag.lab.training.data.decontamination`."""
    ema_decay: float = 0.0
    """Decay of the moving average of weights that is saved; 0 saves the last weights."""
    vocab_size: int = 16384
    """Size of the vocabulary of a model that is trained from nothing."""
    reanchor_tokens: int = 0
    """Repeat the question after this many document tokens; 0 never. A base that is a scanner keeps its own
    setting; a language model gets this one."""
    lexical_match: bool = False
    lexical_prior: bool = False
    lexical_surroundings: bool = False
    lexical_soft: bool = False
    """Parts of the lexical channel: an embedding of the words that also occur in the question, the BM25 score of
    each sentence, the scores of the 3, 7 and 17 sentences around it, which need ``lexical_prior``, and matches by
    the meaning of words, which need the other three and a table of word vectors. A base that is a scanner keeps
    its own parts and gains those that it lacks."""
    embedding_start: bool = False
    """Whether the token embedding of a model that is trained from nothing starts from a table of word vectors."""
    recall_start: bool = False
    """Whether the layers of a model that is trained from nothing start so that a token recalls those like it."""
    lexical_least_units: int = 0
    """The lexical channel treats a shorter document as if it had this many sentences, the added ones without words
    of the question. A base that is a scanner keeps its own number, unless that is 0."""
    lexical_text_weight: float = 0.0
    """In a collection, logits of a text are lowered by this much of what the whole text scores less than the best
    one. A base that is a scanner keeps its own weight, unless that is 0. It has no part in training."""
    validate_every: int = 500
    """Steps between validations."""
    validation_questions: int = 40
    """Questions of each source, at most, in a validation before the end."""
    final_validation_questions: int = 300
    """Questions of each source, at most, in the validation at the end."""
    calibration_questions: int = 0
    """Questions of each source that calibrate the head at the end, on whole training documents; 0 for none."""
    validation_tokens: int = 65_536
    """Tokens of each file, at most, on which a language model is validated."""
    keep_best: bool = False
    """Save the averaged weights with the best validation, by macro recall at 10 or by loss, not the last."""
    save_every: int = 100
    """Steps between saved states, from which an interrupted run resumes."""
    snapshot_every: int = 0
    """Steps between checkpoints of the averaged weights, each in a folder of its own; 0 for none."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that no run can use."""
        if self.stage not in STAGES:
            raise ValueError(f"stage is {self.stage!r}; expected {' or '.join(map(repr, STAGES))}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule is {self.schedule!r}; expected {' or '.join(map(repr, SCHEDULES))}")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"optimizer is {self.optimizer!r}; expected {' or '.join(map(repr, OPTIMIZERS))}"
            )
        for names, least in ((_AT_LEAST_ONE, 1), (_AT_LEAST_ZERO, 0)):
            for name in names:
                if getattr(self, name) < least:
                    raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")
        if not self.sequence_tokens or min(self.sequence_tokens) < 64:
            raise ValueError(
                f"sequence_tokens is {self.sequence_tokens}; expected lengths of at least 64 tokens"
            )
        if self.rerank_unit not in RERANK_UNITS:
            raise ValueError(
                f"rerank_unit is {self.rerank_unit!r}; expected one of {', '.join(map(repr, RERANK_UNITS))}"
            )
        if self.rerank_random > self.rerank_negatives:
            raise ValueError(
                f"rerank_random is {self.rerank_random} and rerank_negatives is {self.rerank_negatives}; expected "
                "at most as many random ones as there are negatives"
            )
        if len(self.betas) != 2:
            raise ValueError(f"betas is {self.betas}; expected two numbers")
        if self.dtype not in ("bfloat16", "float32", "auto"):
            raise ValueError(f"dtype is {self.dtype!r}; expected 'bfloat16', 'float32' or 'auto'")
        for name in _SHARES:
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number from 0 to below 1")
        if isinstance(self.positive_weight, str) and self.positive_weight != "balanced":
            raise ValueError(f"positive_weight is {self.positive_weight!r}; expected a number or 'balanced'")
        if self.lexical_surroundings and not self.lexical_prior:
            raise ValueError(
                "lexical_surroundings is true without lexical_prior; expected both, or the prior alone"
            )
        if self.lexical_soft and not (self.lexical_match and self.lexical_surroundings):
            raise ValueError(
                "lexical_soft is true without lexical_match, lexical_prior and lexical_surroundings; "
                "expected all four"
            )
        if self.other_words_share and not self.lexical_soft:
            raise ValueError(
                f"other_words_share is {self.other_words_share} without lexical_soft, whose word vectors it needs"
            )
        if not self.distillation_temperature > 0:
            raise ValueError(
                f"distillation_temperature is {self.distillation_temperature}; expected a number above 0"
            )
        self._check_groups()
        if self.pseudo_characters < LEAST_PSEUDO_CHARACTERS:
            raise ValueError(
                f"pseudo_characters is {self.pseudo_characters}; expected at least {LEAST_PSEUDO_CHARACTERS}"
            )

    def _check_groups(self) -> None:
        if not 0 <= self.group_hard < self.group_documents:
            raise ValueError(
                f"group_documents is {self.group_documents} and group_hard is {self.group_hard}; expected more "
                "documents than hard ones, since one of them is the question's own"
            )
        if self.group_share and self.group_documents * self.group_tokens > self.tokens_per_pass:
            raise ValueError(
                f"a group has {self.group_documents} stretches of {self.group_tokens} tokens, more than "
                f"tokens_per_pass, {self.tokens_per_pass}; a group is read in one pass: lower group_tokens or "
                "group_documents"
            )

    def to_dict(self) -> dict[str, Any]:
        """All values, for the model card and the checkpoint."""
        return asdict(self)

    def difference(self, saved: dict[str, Any]) -> str | None:
        """Why a run with the ``saved`` values cannot go on with these; None if it can.

        Keys that an older version did not know count as left out.
        """
        for field in fields(self):
            own, before = getattr(self, field.name), saved.get(field.name, field.default)
            if field.name not in MAY_CHANGE and json.dumps(own) != json.dumps(before):
                return f"{field.name} was {json.dumps(before)} and is now {json.dumps(own)}"
        return None
