"""Words that :mod:`stages.link` does not take for names. All case-folded, with straight apostrophes.

English only, and compact on purpose: function words, the calendar, and the words that most often
open a spoken sentence. A word missing here costs an entity node that few questions name.
"""

from __future__ import annotations

__all__ = ["LABELS", "MODIFIERS", "OPENERS", "STOP", "TITLES"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _words(
    """
    a an the this that these those here there i me my mine myself you your yours yourself he him his she her hers it
    its we us our ours they them their theirs one ones someone somebody something anyone anybody anything everyone
    everybody everything nobody nothing none who whom whose which what when where why how whether
    and or but nor so yet if then than because cause since though although unless until while as at by for from in
    into of off on onto out over to up down with without within about above after again against along among around
    before behind below beneath beside besides between beyond during except inside near outside per through
    throughout toward towards under upon via
    am is are was were be been being do does did done doing have has had having can could may might must shall should
    will would ought let
    not no yes ok okay too very also just only even still ever never always often sometimes already soon now today
    tonight tomorrow yesterday
    all any both each either every few many more most much neither other others several some such
    another same first second third last next
    monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
    january february march april june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    am pm lol omg btw imo imho idk tbh fyi asap rofl lmao wtf brb ps tv ha haha hahaha hehe ah aha aw aww oh ooh uh um
    hmm y'all ma'am
    """
)
"""Never part of a name."""

OPENERS = _words(
    """
    hey hi hello hiya yo bye goodbye cheers thanks thank thx welcome congrats congratulations sorry please pls
    yeah yep yup yea nope nah sure right exactly absolutely definitely totally certainly indeed agreed
    wow whoa woah yay woohoo woo hooray gosh geez jeez damn ugh phew oops whoops man dude guys folks
    well anyway anyways alright actually really honestly seriously basically literally obviously clearly apparently
    maybe perhaps probably hopefully fortunately luckily unfortunately sadly finally eventually recently lately
    currently usually generally normally especially particularly however therefore meanwhile moreover otherwise
    instead overall plus further furthermore additionally suddenly later earlier once twice ago
    good great nice cool awesome amazing wonderful fantastic incredible fabulous lovely beautiful gorgeous sweet
    perfect excellent brilliant superb cute funny fun crazy wild interesting bad sad terrible awful tough hard easy
    happy glad proud lucky grateful thankful excited thrilled tired ready busy curious true fair enough better best
    like love loved hate enjoy wish hope guess bet think know believe feel see saw look looks sounds seems feels hear
    heard tell told say said ask asked talk speak get got gotten gotta gonna wanna give gave go goes went gone come
    came take took make made makes keep kept put find found found try tried need want wanted work works use used start
    stop help helps check remember forget imagine understand mean means show run read write play eat drink buy
    bring call send meet stay leave live learn turn wait watch walk add move set pick pay spend share join enjoyable
    can't cannot let's lets there's here's
    people everyone kids friends family life time times day days night morning afternoon evening week weeks weekend
    month months year years home work school music food books movies art nature travel health money
    two three four five six seven eight nine ten half lots lot plenty loads tons
    speaking being able unable quick fast slow long short early late full whole part kind sort way ways things thing
    stuff self ideas idea point fact news
    total overall regarding according despite apart given depending based assuming considering including
    whenever wherever whatever whoever however whichever
    omfg yikes touché bravo kudos props
    appreciate super catch hang count cherish reminds remind gotcha together impressive pretty thankfully anytime mind
    rate care change push trust felt met takes gives hold build follow almost mostly mainly highly truly surely quite
    oof mm mmm hmmm awww ooo yum ouch bummer lemme c'mon cmon
    photo picture image video
    """
)
"""Dropped at the start of a sentence, kept inside one ("a Great Dane")."""

MODIFIERS = _words("new old north south east west big little young small high low real")
"""No name alone at the start of a sentence, but the first part of one ("New York")."""

LABELS = _words(
    """
    user assistant system human ai bot agent tool note notes question answer q update reminder todo subject warning
    error summary title date time re fwd tip tips example source context input output task goal status result results
    message edit disclaimer caution important
    """
)
"""Labels before a colon that name no speaker."""

TITLES = _words("dr mr mrs ms st prof mt sr jr sgt lt capt gen rev hon fr mme")
"""Abbreviations whose dot does not end a sentence."""
