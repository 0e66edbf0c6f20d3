"""Mail by SMTP, for a host's own effects: see `celegraph.agent.smtp`, which sends notifications too."""

from __future__ import annotations

from celegraph.agent.smtp import compose as compose
from celegraph.agent.smtp import has_line_break as has_line_break
from celegraph.agent.smtp import is_address as is_address
from celegraph.agent.smtp import look_up_in_log as look_up_in_log
from celegraph.agent.smtp import send as send
from celegraph.agent.smtp import was_accepted as was_accepted
