"""The reference agent: answers a support ticket by e-mail, after a manager's approval."""
