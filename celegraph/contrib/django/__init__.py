"""The door to Django: put "celegraph.contrib.django" into INSTALLED_APPS, see docs/django.md."""
